import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { Gate } from "../../provider/gate.ts";
import { answer, call, hold, thinking } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { startKillableStage } from "../helpers/killable-stage.ts";
import { startStage } from "../helpers/stage.ts";
import { problems } from "./console-axe.ts";
import { ask, ConsoleBrowser, consoleAddress } from "./console-browser.ts";

const boxes = "html, body, .page, .bar, .rail, .rail-list, .main, .log, .composer, .side";

const asking = join(import.meta.dirname, "..", "fixtures", "extension", "asking.ts");
const built = join(import.meta.dirname, "..", "..", "dist", "web");

test("the page with its styles loads at most 90 KB", () => {
  const sizes = ["index.html", "main.js", "styles.css"].map((name) => gzipSync(readFileSync(join(built, name))).length);
  expect(sizes.reduce((sum, size) => sum + size)).toBeLessThanOrEqual(90_000);
});

test("a code opens the page once, the tab stays signed in, and signing out ends it", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  await session.prompt("Hello.").settled();
  const address = await consoleAddress(stage.client);
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(address);
  await visit.shows(/idle · model-1/, ".rail");
  expect(await visit.page.evaluate(() => location.href)).toBe(address.replace(/#.*/, ""));
  expect(await visit.page.evaluate(() => document.cookie)).toBe("");

  await visit.page.reload();
  await visit.shows(/idle · model-1/, ".rail");
  const second = await browser.visit(address);
  await second.shows(/Not connected[\s\S]*pi-rpcd web/);

  const tokens = async (): Promise<readonly string[]> =>
    (await stage.client.call("token/list", {})).tokens.map(({ name }) => name);
  expect(await tokens()).toContain("web-1");
  await visit.click("This tab");
  await visit.click("Sign out");
  await visit.shows(/pi-rpcd web/, ".news");
  await expect.poll(tokens).not.toContain("web-1");
  expect(await visit.page.evaluate(() => sessionStorage.length)).toBe(0);
  expect(await visit.faults()).toEqual([]);
  expect(await second.faults()).toEqual([]);
});

test("looking at every view of sleeping sessions starts no pi, changes nothing, and calls nothing that does", async () => {
  await using stage = await startKillableStage({
    provider: {
      script: [answer(thinking("Hm."), "Done.", call("bash", { command: "echo one" })), answer("And done.")],
    },
  });
  const { client } = stage;
  const first = await stage.session();
  await first.prompt("Do it.").settled();
  const second = await stage.session();
  await second.prompt("Hello.").settled();
  await second.push({ customType: "note", content: `A push. It is ${"long ".repeat(60)}, to its end.` }).answered;
  for (const session of [first, second]) await fallAsleep(client, session.id);

  const address = await consoleAddress(client);
  /** Each call that changed something. */
  const calls = (): readonly string[] =>
    readFileSync(join(stage.root, "daemon.calls.log"), "utf8")
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { readonly method: string }).method);
  const state = async (): Promise<unknown> => ({
    sessions: (await client.listSessions()).map(({ sessionId, state, generation, file, updatedAt }) => ({
      ...{ sessionId, state, generation, updatedAt },
      file: readFileSync(file, "utf8"),
    })),
    requests: stage.provider.requests.length,
  });
  const before = await state();
  const callsBefore = calls().length;
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(address);
  for (const { id } of [first, second]) {
    await visit.clickOn(`[data-session="${id}"] .row-name`);
    await visit.shows(/Do it\.[\s\S]*And done\.|Hello\.[\s\S]*Echo/, ".log");
  }
  await visit.clickOn(`[data-session="${first.id}"] .row-name`);
  await visit.shows(/bash\s+echo one/, ".log");
  await visit.clickOn(".item.tool summary");
  await visit.shows(/Output\s+one/, ".log");
  for (const place of [2, 3, 1]) await visit.clickOn(`.filters label:nth-of-type(${place})`);
  await visit.shows(/Thought/, ".log");
  await visit.clickOn(".item.thought summary");
  for (const key of ["Escape", "j", "k", "Enter", "?"] as const) await visit.press(key);
  await visit.shows(/next question/, "dialog");
  await visit.press("Escape");
  // The keys may have opened the other one.
  await visit.clickOn(`[data-session="${first.id}"] .row-name`);
  await visit.shows(/Thought/, ".log");
  await visit.clickOn("#tab-tree");
  await visit.shows(/pi is here/, ".tree-rows");
  for (const [key, shows] of [
    ["2", /Together/],
    ["3", /What fills/],
    ["4", /By model/],
    ["1", /Thought/],
  ] as const) {
    await visit.press(key);
    await visit.shows(shows, ".panel:not([inert])");
  }
  await visit.click("New");
  await visit.shows(/First message/, ".main");
  await visit.click("Open…");
  await visit.shows(/pi's sessions/, ".main");
  await visit.click("Pushes");
  await visit.clickOn(".push-row .row-name");
  await visit.shows(/the model has answered it[\s\S]*Requests that carried it/, ".push-details");
  await visit.click("Show all of it");
  await visit.shows(/A push\. It is long[\s\S]*, to its end/, ".push-content");
  await visit.click("Daemon");
  await visit.shows(/State directory/, ".main");
  await visit.clickOn(`[data-session="${first.id}"] .row-name`);
  await visit.page.focus(".composer textarea");
  await visit.type("/");
  await visit.shows(/\/mcp|commands/, ".composer");
  expect(await state()).toEqual(before);
  // The only effect: questions can be answered here.
  expect(new Set(calls().slice(callsBefore))).toEqual(new Set(["daemon/subscribe"]));
  expect(await visit.faults()).toEqual([]);
});

/** How a system asks a page to look. */
const looks: Readonly<Record<string, { name: string; value: string }[]>> = {
  light: [{ name: "prefers-color-scheme", value: "light" }],
  dark: [{ name: "prefers-color-scheme", value: "dark" }],
  forced: [{ name: "forced-colors", value: "active" }],
};

test("axe finds nothing in any view, and nothing scrolls sideways", async () => {
  const gate = new Gate();
  await using stage = await startStage({
    agent: { settings: { extensions: [asking] } },
    provider: {
      script: [
        answer(
          thinking("A long thought. ".repeat(40)),
          "I look.",
          call("bash", { command: `echo ${"long ".repeat(80)}` }),
        ),
        answer(
          `# Done\n\n| a | b |\n|---|---|\n| ${"wide".repeat(80)} | 2 |\n\n\`\`\`ts\n${"const a = 1; ".repeat(40)}\n\`\`\``,
        ),
        answer("It goes on", hold(gate), "."),
      ],
    },
  });
  const { client, cwd } = stage;
  const session = await client.createSession({ cwd, model: "scripted/model-1", dialogPolicy: { kind: "wait" } });
  await session.prompt("A message without a space: ".padEnd(400, "x")).settled();
  const running = session.prompt("Go on.");
  await gate.reached;
  await session.followUp("Later.");
  const question = { method: "confirm", title: "Run this?", text: "./deploy.sh" };
  ask(session, [question]);
  const sleeping = await stage.session();
  await sleeping.prompt("Hello.").settled();
  await client.call("session/rename", { sessionId: sleeping.id, name: "a very long name ".repeat(8) });
  await fallAsleep(client, sleeping.id);

  const address = await consoleAddress(client);
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(address);
  const cdp = await visit.page.createCDPSession();
  const found: string[] = [];
  const look = async (view: string): Promise<void> => {
    for (const width of [390, 900, 1_440]) {
      await visit.page.setViewport({ width, height: 900 });
      for (const [scheme, features] of Object.entries(looks)) {
        await cdp.send("Emulation.setEmulatedMedia", { features });
        await visit.isDrawn();
        const where = `${view} ${width} ${scheme}`;
        await visit.shot(where.replaceAll(" ", "-"));
        for (const problem of await problems(visit, { boxes })) found.push(`${where}: ${problem}`);
      }
    }
  };
  await visit.shows(/waits for you/, ".rail");
  await look("sessions");
  await visit.clickOn(`[data-session="${session.id}"] .row-name`);
  await visit.shows(/It goes on/, ".log");
  await visit.shows(/Run this\?/, ".question-zone");
  await visit.shows(/Later\./, ".waits");
  await look("conversation");
  await visit.page.evaluate(() => {
    for (const summary of document.querySelectorAll<HTMLElement>(".log summary")) summary.click();
  });
  await visit.shows(/Arguments/, ".log");
  await look("opened");
  await visit.press("?");
  await look("keys");
  await visit.press("Escape");
  for (const [button, shows] of [
    ["New", /First message/],
    ["Open…", /pi's sessions/],
    ["Daemon", /State directory/],
  ] as const) {
    await visit.page.setViewport({ width: 1_440, height: 900 });
    await visit.click(button);
    await visit.shows(shows, ".main");
    await look(button);
  }
  gate.open();
  await running.settled();
  expect(found).toEqual([]);
  expect(await visit.faults()).toEqual([]);
});
