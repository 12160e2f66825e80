import { readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { connect } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, hang, hold } from "../../provider/reply.ts";
import { createLog } from "../../server/log.ts";
import { mark } from "../helpers/hostile-texts.ts";
import { startStage } from "../helpers/stage.ts";
import { problems } from "./console-axe.ts";
import { ConsoleBrowser, consoleAddress, type Visit } from "./console-browser.ts";

const boxes = "html, body, .page, .main, .sheet-page, .log-lines, .actions, .actions .commands, .log";

const built = join(import.meta.dirname, "..", "..", "dist", "web");

const image = `<img src=x onerror="globalThis.${mark}=1">`;
const hostile = `${image} \u202egpj.exe`;

/** Opens the list of all actions, and types into it. */
async function find(visit: Visit, words: string): Promise<void> {
  await visit.page.keyboard.down("Control");
  await visit.press("k");
  await visit.page.keyboard.up("Control");
  await visit.holds(() => document.activeElement?.matches(".actions input"));
  await visit.type(words);
}

test.each(["chromium", "firefox-esr"] as const)(
  "by Ctrl+K alone in %s: a session is opened by its name, renamed, stopped, and places are changed; names are text",
  async (program) => {
    await using stage = await startStage({ provider: { script: [answer("This never ends.", hang())] } });
    const { client } = stage;
    const session = await stage.session();
    await client.call("session/rename", { sessionId: session.id, name: hostile });
    const other = await stage.session();
    await client.call("session/rename", { sessionId: other.id, name: "Another one" });
    await using browser = await ConsoleBrowser.open(program);
    const visit = await browser.visit(await consoleAddress(client));
    await visit.shows(/Another one/, ".rail");

    await find(visit, "onerror");
    await visit.shows(/<img src=x onerror=".*"> RLOgpj\.exe/, ".actions [aria-selected=true]");
    await visit.press("Enter");
    await visit.holds(() => document.activeElement?.matches(".log"));
    await visit.shows(/<img src=x/, ".head h1");

    await visit.press("i");
    await visit.type("Never end.");
    await visit.press("Enter");
    await visit.shows(/This never ends\./, ".log");
    await visit.shows(/running/, ".head");
    await visit.type("a draft");
    await find(visit, "stop");
    await visit.press("Enter");
    await visit.hides(/running/, ".head");
    // The field has its text and the focus again.
    await visit.holds(() => document.activeElement?.matches("textarea") && document.querySelector("dialog") === null);
    expect(await visit.page.evaluate(() => document.querySelector("textarea")?.value)).toBe("a draft");

    await find(visit, "rena");
    await visit.press("Enter");
    await visit.holds(() => document.activeElement?.matches("dialog form input"));
    await visit.page.evaluate(() => (document.activeElement as HTMLInputElement).select());
    await visit.type("Renamed");
    await visit.press("Enter");
    await visit.shows(/Renamed/, ".head h1");

    await find(visit, "");
    const selected = (): Promise<string> => visit.text(".actions [aria-selected=true]");
    const first = await selected();
    await visit.press("ArrowDown");
    await expect.poll(selected).not.toBe(first);
    await visit.press("ArrowUp", "ArrowUp", "ArrowDown");
    await expect.poll(selected).toBe(first);
    await visit.press("Escape");
    await visit.holds(() => document.querySelector("dialog") === null);
    await visit.shows(/Renamed/, ".head h1");

    await find(visit, "daemon");
    await visit.press("Enter");
    await visit.shows(/State directory/, ".main");
    await find(visit, "no such action");
    await visit.shows(/No action fits/, ".actions");
    await visit.press("Enter");
    await visit.shows(/No action fits/, ".actions");
    expect(await visit.page.evaluate((name) => name in globalThis, mark)).toBe(false);
    expect(await visit.faults()).toEqual([]);
  },
);

test("the list of keys and the list of actions have the same words for the same keys", async () => {
  await using stage = await startStage();
  await stage.session();
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await visit.clickOn(".row-name");
  await visit.press("?");
  await visit.shows(/all keys/, "dialog");
  const pairs = (row: string, keys: string, words: string): Promise<readonly string[]> =>
    visit.page.evaluate(
      (each, ofKeys, ofWords) =>
        Array.from(document.querySelectorAll(each), (found) => {
          const of = (selector: string, from = found): string =>
            Array.from(from.querySelectorAll(selector), ({ textContent }) => textContent).join(" ");
          const said = ofWords === "+" ? found.nextElementSibling?.textContent : of(ofWords);
          return `${of(ofKeys)}: ${said?.toLowerCase()}`;
        }),
      ...([row, keys, words] as const),
    );
  const listed = await pairs("dialog dt", "kbd", "+");
  await visit.press("Escape");
  await visit.holds(() => document.querySelector("dialog") === null);
  await find(visit, "");
  const offered = await pairs(".actions [role=option]:has(kbd)", "kbd", ".action-name");
  expect(offered.length).toBeGreaterThan(6);
  expect(listed).toEqual(expect.arrayContaining([...offered]));
  await visit.press("Escape");

  // A phone has it in its menu.
  await visit.page.setViewport({ width: 390, height: 844 });
  await visit.click("This tab");
  await visit.click("All actions…");
  await visit.shows(/Sign out/, ".actions");
  expect(await visit.faults()).toEqual([]);
});

test("the daemon's log is followed in its view, by level, with foreign words as text", async () => {
  const log = createLog({ level: "info", lines: { write: () => {} } });
  await using stage = await startStage({ log });
  const { client, stateDir } = stage;
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(client));
  await visit.click("Daemon");
  // What is above it comes later, and it is followed only in view.
  await visit.shows(/State directory/, ".main");
  await visit.page.evaluate(() => document.querySelector(".daemon-log")?.scrollIntoView());
  await visit.shows(/info\s+listening[\s\S]*stateDir=/, ".log-lines");

  await using named = await connect({ stateDir, name: image });
  await expect(named.call("session/create", { cwd: "/no-such-directory" })).rejects.toThrow();
  await visit.shows(/client=<img src=x onerror=".*"> .*outcome=cwd_invalid connectionId=/, ".log-lines");
  log.error({ err: new Error("It broke.") }, "something failed");
  await visit.shows(/error\s+something failed err="It broke\."/, ".log-lines");
  await visit.click("Warnings and errors");
  await visit.hides(/listening/, ".log-lines");
  await visit.clickOn(".log-lines summary");
  await visit.shows(/"message": "It broke\."[\s\S]*Error: It broke\.\s+at /, ".log-lines pre");
  expect(await visit.page.evaluate((name) => name in globalThis, mark)).toBe(false);
  expect(await visit.faults()).toEqual([]);
});

/** What is coloured in view, by its kind. */
function coloured(visit: Visit): Promise<Readonly<Record<string, readonly string[]>>> {
  return visit.page.evaluate(() =>
    Object.fromEntries(
      Array.from(CSS.highlights, ([kind, ranges]) => [
        kind,
        Array.from(ranges, ({ startContainer, startOffset, endOffset }) =>
          (startContainer.textContent ?? "").slice(startOffset, endOffset),
        ),
      ]).filter(([, texts = []]) => texts.length > 0),
    ),
  );
}

test.each(["chromium", "firefox-esr"] as const)(
  "code in view has colours in %s without one more element, when its block is complete, and only then",
  async (program) => {
    const gate = new Gate();
    const comment = `/*\n${" * A comment that is longer than a piece.\n".repeat(120)} */`;
    const code = ["```ts", `const tag = '${image}';`, "return 7;", ""].join("\n");
    await using stage = await startStage({
      provider: {
        script: [
          answer("No code."),
          answer("It comes.\n\n", code, hold(gate), "```\n\nDone."),
          answer(Array(80).fill("A long answer.").join("\n\n")),
          answer(
            `\`\`\`js\n${comment}\nlet last;\n\`\`\`\n\n\`\`\`js\n${"let a = 1;\n".repeat(2_000)}\`\`\`\n\n\`\`\`js\nlet end = 0;\n\`\`\`\n\nThe end.`,
          ),
        ],
      },
    });
    const session = await stage.session();
    await session.prompt("First.").settled();
    await using browser = await ConsoleBrowser.open(program);
    const visit = await browser.visit(await consoleAddress(stage.client));
    const isLoaded = (): Promise<boolean> =>
      visit.page.evaluate(() =>
        performance.getEntriesByType("resource").some(({ name }) => name.includes("code-colours")),
      );
    const openSession = async (): Promise<void> => {
      await visit.shows(/model-1/, ".rail");
      await visit.press("j", "Enter");
    };
    await openSession();
    await visit.shows(/No code\./, ".log");
    const running = session.prompt("Second.");
    await gate.reached;
    await visit.shows(/return 7;/, ".log pre");
    await visit.isDrawn();
    expect([await isLoaded(), await coloured(visit)]).toEqual([false, {}]);
    gate.open();
    await running.settled();
    const ofCode = {
      "code-keyword": ["const", "return"],
      "code-string": [`'${image}'`],
      "code-value": ["7"],
    };
    await expect.poll(() => coloured(visit)).toEqual(ofCode);
    const inside = () =>
      visit.page.evaluate(() => Array.from(document.querySelectorAll(".log pre *"), ({ tagName }) => tagName));
    expect(await inside()).toEqual(["CODE", "BDI"]);

    await session.prompt("Third.").settled();
    await visit.shows(/A long answer\.\s*$/, ".log");
    await expect.poll(() => coloured(visit)).toEqual({});
    await visit.page.evaluate(() => document.querySelector(".log pre")?.scrollIntoView());
    await expect.poll(() => coloured(visit)).toEqual(ofCode);

    // A comment over several pieces; and a code that is too long, above another one.
    await session.prompt("Fourth.").settled();
    await visit.page.evaluate(() => {
      const log = document.querySelector(".log");
      if (log !== null) log.scrollTop = log.scrollHeight;
    });
    await visit.shows(/The end\./, ".log");
    await visit.holds(() => document.querySelectorAll(".log pre").length === 4);
    await visit.page.evaluate(() => document.querySelectorAll(".log pre")[1]?.scrollIntoView());
    const comments = async (): Promise<readonly string[]> => (await coloured(visit))["code-comment"] ?? [];
    await expect.poll(async () => (await comments()).join("")).toBe(comment);
    expect((await comments()).length).toBeGreaterThan(1);
    await visit.page.evaluate(() => document.querySelectorAll(".log pre")[3]?.scrollIntoView({ block: "end" }));
    await expect.poll(() => coloured(visit)).toEqual({ "code-keyword": ["let"], "code-value": ["0"] });

    // A browser that cannot do it loads nothing for it.
    expect(await isLoaded()).toBe(true);
    await visit.page.evaluateOnNewDocument(() => Reflect.deleteProperty(CSS, "highlights"));
    await visit.page.reload();
    await openSession();
    await visit.shows(/The end\./, ".log");
    await visit.page.evaluate(() => document.querySelectorAll(".log pre")[1]?.scrollIntoView());
    await visit.isDrawn();
    expect(await isLoaded()).toBe(false);
    expect(await visit.page.evaluate((name) => name in globalThis, mark)).toBe(false);
    expect(await visit.faults()).toEqual([]);
  },
);

test("what colours code is a file of at most 25 KB, which the page does not load at first", () => {
  const read = (name: string): string => readFileSync(join(built, name), "utf8");
  expect(gzipSync(read("code-colours.js")).length).toBeLessThanOrEqual(25_000);
  for (const name of ["main.js", "places.js"]) expect(read(name)).not.toMatch(/from ?["'][^"']*code-colours/);
});

test("axe finds nothing in the actions, the log and coloured code, and nothing scrolls sideways", async () => {
  const log = createLog({ level: "info", lines: { write: () => {} } });
  const code = [
    "```ts",
    "// A class",
    "export class Limiter {",
    '  readonly name = "limiter";',
    "  allow(now = Date.now()): boolean {",
    "    return this.#calls.filter((at) => at > now - 1_000).length < 5;",
    "  }",
    "}",
    "```",
    "```html",
    '<a href="https://example.com">A link</a>',
    "```",
    "```diff",
    "-const max = 2;",
    "+const max = 3;",
    "```",
  ].join("\n");
  await using stage = await startStage({ log, provider: { script: [answer(code)] } });
  const session = await stage.session();
  await session.prompt("Show code.").settled();
  await stage.client.call("session/rename", { sessionId: session.id, name: "A session with a long name ".repeat(4) });
  for (let count = 0; count < 3; count += 1)
    log.warn({ sessionId: session.id, count }, `a warning ${"long ".repeat(40)}`);
  log.error({ err: new Error("It broke.") }, "something failed");
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  const cdp = await visit.page.createCDPSession();
  const found: string[] = [];
  const look = async (view: string): Promise<void> => {
    for (const width of [390, 1_440]) {
      await visit.page.setViewport({ width, height: 900 });
      for (const scheme of ["light", "dark"]) {
        await cdp.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
        await visit.isDrawn();
        const where = `${view} ${width} ${scheme}`;
        await visit.shot(where.replaceAll(" ", "-"));
        for (const problem of await problems(visit, { boxes })) found.push(`${where}: ${problem}`);
      }
    }
  };
  await visit.clickOn(".row-name");
  await visit.holds(() => document.querySelector(".model-fields") !== null);
  await expect.poll(async () => (await coloured(visit))["code-added"]).toEqual(["+const max = 3;"]);
  await look("code");
  await find(visit, "");
  await look("actions");
  await visit.press("Escape");
  await visit.holds(() => document.querySelector("dialog") === null);
  await find(visit, "daemon");
  await visit.press("Enter");
  await visit.shows(/State directory/, ".main");
  await visit.page.evaluate(() => document.querySelector(".daemon-log")?.scrollIntoView());
  await visit.shows(/something failed/, ".log-lines");
  await visit.clickOn(".log-lines li:last-child summary");
  await look("log");
  expect(found).toEqual([]);
  expect(await visit.faults()).toEqual([]);
});
