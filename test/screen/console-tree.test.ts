import { appendFileSync } from "node:fs";
import type { KeyInput } from "puppeteer-core";
import { expect, test } from "vitest";
import { connect, type SessionHandle } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, hold } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { type Stage, startStage } from "../helpers/stage.ts";
import { problems } from "./console-axe.ts";
import { ConsoleBrowser, consoleAddress, type Visit } from "./console-browser.ts";

const boxes = "html, body, .page, .main, .tabs-line, .panel, .tree, .tree-head, .tree-box, .tree-chosen, .tree-branch";

async function entryWith(session: SessionHandle, text: string): Promise<string> {
  const { entries } = await session.outline();
  return entries.find((entry) => entry.text?.startsWith(text) === true)?.entryId ?? "none";
}

/** A session with a branch that was left after a run of tools. It sleeps. */
async function branched(stage: Stage): Promise<SessionHandle> {
  // It leaves again, so that only the page follows the session.
  await using client = await connect({ stateDir: stage.stateDir });
  const session = await client.createSession({ cwd: stage.cwd, model: "scripted/model-1", name: "First attempt" });
  const replies = [
    answer("I look.", call("bash", { command: "true" })),
    answer(call("bash", { command: "true" })),
    answer("It is the third call."),
    answer("An abandoned answer."),
    answer("A better answer."),
  ];
  stage.provider.add(...replies);
  await session.promptAndWait("Why does the test fail?");
  await session.promptAndWait("Try a lock. محاولة \u202e");
  await session.navigate(await entryWith(session, "Try a lock."));
  await session.promptAndWait("Try a queue.");
  await session.setLabel(await entryWith(session, "It is the third call."), "cause");
  await fallAsleep(stage.client, session.id);
  return stage.client.session(session.id);
}

async function openTree(visit: Visit, sessionId: string): Promise<void> {
  await visit.clickOn(`[data-session="${sessionId}"] .row-name`);
  await visit.shows(/\S/, ".log");
  await showTree(visit);
  await visit.shows(/pi is here/, ".tree-rows");
}

/** By the key of its tab: the number of its place. */
async function showTree(visit: Visit): Promise<void> {
  const place = await visit.page.evaluate(() =>
    Array.from(document.querySelectorAll("[role=tab]")).findIndex(({ id }) => id === "tab-tree"),
  );
  await visit.press(String(place + 1) as KeyInput);
}

/** The text of what has the focus. */
function focused(visit: Visit): Promise<string> {
  return visit.page.evaluate(() => (document.activeElement as HTMLElement | null)?.innerText.slice(0, 300) ?? "");
}

test("the tree of a sleeping session shows its branches and leads to their messages, and starts no pi", async () => {
  await using stage = await startStage();
  const session = await branched(stage);
  const before = await session.get();
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await openTree(visit, session.id);
  await visit.shows(/2 branches/, ".tree-head");
  const rows = await visit.text(".tree-rows");
  expect(rows).toMatch(
    /A better answer\.[\s\S]*Try a queue\.[\s\S]*An abandoned answer\.[\s\S]*Try a lock\.[\s\S]*It is the third call/,
  );
  expect(rows).toMatch(/cause[\s\S]*2 branches/);
  expect(rows).toMatch(/\d more/);
  // What nobody can see is shown by its name.
  expect(rows).toMatch(/Try a lock\.[^\n]*RLO/);

  await visit.press("j");
  await expect.poll(() => focused(visit)).toMatch(/pi is here/);
  const [{ entryId = "" } = {}] = (await session.outline()).entries.filter(({ text }) => text === "A better answer.");
  await visit.clickOn(`[data-tree-row="${entryId}"]`);
  await visit.click("Show in the conversation");
  await expect.poll(() => focused(visit)).toMatch(/A better answer/);

  // Another branch is read beside the conversation, which stays where it is.
  await showTree(visit);
  await visit.clickOn(`[data-tree-row="${await entryWith(session, "An abandoned")}"]`);
  await visit.press("Enter");
  await visit.shows(/Why does the test fail\?[\s\S]*Try a lock\.[\s\S]*An abandoned answer\./, ".tree-branch .log");
  await expect.poll(() => focused(visit)).toMatch(/An abandoned answer/);
  expect(await visit.text(".tree-branch")).not.toMatch(/A better answer/);
  await visit.shot("tree-branch");
  await visit.press("Escape");
  await visit.shows(/pi is here/, ".tree-rows");
  const after = await session.get();
  expect([after.state, after.generation, after.cursor]).toEqual(["hibernated", before.generation, before.cursor]);
  expect(await visit.faults()).toEqual([]);
});

test("a fork and going on from an entry work by keys alone, and what is refused is said with what allows it", async () => {
  const gate = new Gate();
  await using stage = await startStage();
  const session = await branched(stage);
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await openTree(visit, session.id);
  const field = (): Promise<string> =>
    visit.page.evaluate(() => (document.activeElement as HTMLTextAreaElement | null)?.value ?? "");

  // The abandoned branch goes on, in the same session.
  const abandoned = await entryWith(session, "An abandoned");
  await visit.press("j");
  for (let steps = 0; !(await focused(visit)).includes("An abandoned"); steps += 1) {
    expect(steps).toBeLessThan(20);
    await visit.press("ArrowDown");
  }
  await visit.tabTo(/^Fork\b/);
  await visit.press("Enter");
  await visit.shows(/pi forks before a message of a user/, ".tree-chosen");
  await visit.tabTo(/^Go on\b/);
  await visit.press("Enter");
  await visit.shows(/An abandoned answer\./, ".log");
  expect((await session.outline()).entries.find(({ entryId }) => entryId === abandoned)).toBeDefined();
  await visit.press("Escape");
  await showTree(visit);
  await visit.shows(/pi went on from here[\s\S]*pi is here[\s\S]*An abandoned/, ".tree-rows");

  // A fork before a message of a user: the new session opens, with the text in its field.
  stage.provider.add(answer("Wait for it.", hold(gate), " Over."));
  await stage.client.call("session/prompt", { sessionId: session.id, text: "Work." });
  await gate.reached;
  await visit.shows(/Work\./, ".tree-rows");
  await visit.press("j");
  for (let steps = 0; !(await focused(visit)).includes("Try a queue."); steps += 1) {
    expect(steps).toBeLessThan(30);
    await visit.press("j");
  }
  await visit.tabTo(/^Fork\b/);
  await visit.press("Enter");
  await visit.shows(/busy \(a run is active\)/, ".tree-chosen");
  await visit.shot("tree-refused");
  await visit.tabTo(/^Stop the run, then fork$/);
  await visit.press("Enter");
  await expect.poll(field).toBe("Try a queue.");
  const { sessions } = await stage.client.call("session/list", {});
  const forked = sessions.find(({ sessionId }) => sessionId !== session.id)?.sessionId ?? "";
  expect(JSON.stringify((await stage.client.session(forked).transcript()).entries)).not.toContain("Try a");

  // It leads back to where it came from, and a message of a conversation can be forked too.
  await visit.press("Escape");
  await showTree(visit);
  await visit.shows(/Forked from First attempt/, ".tree-head");
  await visit.shot("tree-forked");
  await visit.page.focus(".tree-parent .link");
  await visit.press("Enter");
  await visit.shows(/An abandoned answer\./, ".tree-rows");
  await visit.press("1");
  const button = '.item.user button[title^="Makes a new session"]';
  await visit.page.locator(button).wait();
  await visit.page.focus(button);
  await visit.press("Enter");
  await expect.poll(field).toBe("Why does the test fail?");
  expect(await visit.faults()).toEqual([]);
});

/** Adds entries to the file of a sleeping session, as another program would. */
async function extend(
  session: SessionHandle,
  parents: (n: number, leafId: string) => string,
  count: number,
): Promise<void> {
  const [{ file }, { leafId }] = [await session.get(), await session.outline({ limit: 1 })];
  const lines = Array.from({ length: count }, (_, n) => {
    const content = [{ type: "text", text: `Entry ${n} with a few words.` }];
    const message = {
      role: "assistant",
      content,
      timestamp: n,
      api: "a",
      provider: "p",
      model: "m",
      stopReason: "stop",
    };
    const place = { id: `x${n}`, parentId: parents(n, leafId ?? ""), timestamp: new Date(n).toISOString() };
    return `${JSON.stringify({ type: "message", ...place, message })}\n`;
  });
  appendFileSync(file, lines.join(""));
}

test("10,000 entries in a row and 2,000 branches take fewer than 2,000 elements, and every row can be reached", async () => {
  await using stage = await startStage();
  await using browser = await ConsoleBrowser.open();
  for (const [count, parent] of [
    [10_000, (n: number, leafId: string) => (n === 0 ? leafId : `x${n - 1}`)],
    [2_000, (_: number, leafId: string) => leafId],
  ] as const) {
    const session = await branched(stage);
    await extend(session, parent, count);
    const visit = await browser.visit(await consoleAddress(stage.client));
    await openTree(visit, session.id);
    await visit.shows(count === 10_000 ? /10,0\d\d entries, 2 branches/ : /2,001 branches/, ".tree-head");
    if (count === 10_000) await visit.clickOn('.tree-row[aria-expanded="false"]');
    const elements = (): Promise<number> => visit.page.evaluate(() => document.querySelectorAll("*").length);
    expect(await elements()).toBeLessThan(2_000);
    await visit.press("j", "End");
    await expect.poll(() => focused(visit)).toMatch(/First attempt/);
    expect(await elements()).toBeLessThan(2_000);
    for (const top of [20_000, 50_000]) {
      await visit.page.evaluate((to) => document.querySelector(".tree-box")?.scrollTo(0, to), top);
      await visit.isDrawn();
      const isSeen = await visit.page.evaluate(() => {
        const box = document.querySelector(".tree-box")?.getBoundingClientRect();
        const at = document.elementFromPoint((box?.left ?? 0) + 200, (box?.top ?? 0) + 200);
        return at?.closest(".tree-row") !== null;
      });
      expect(isSeen).toBe(true);
      expect(await elements()).toBeLessThan(2_000);
    }
    expect(await visit.faults()).toEqual([]);
  }
});

test("axe finds nothing in the tree, wide and narrow, light and dark, and nothing scrolls sideways", async () => {
  await using stage = await startStage();
  const session = await branched(stage);
  const { file } = await session.get();
  const { leafId } = await session.outline({ limit: 1 });
  // Branches in branches, deeper than lanes are drawn.
  const lines = Array.from({ length: 60 }, (_, n) => {
    const content = n % 3 === 0 ? "word".repeat(60) : `Message ${n} of a longer conversation with several words in it`;
    const parentId = n === 0 ? leafId : `y${(n - 1) >> 1}`;
    const type =
      n % 11 === 5
        ? { type: "compaction", summary: "All that was said before.", firstKeptEntryId: "y0", tokensBefore: 1 }
        : { type: "message", message: { role: n % 2 === 0 ? "user" : "assistant", content, timestamp: n } };
    return `${JSON.stringify({ ...type, id: `y${n}`, parentId, timestamp: new Date(1e12 + n * 6e4).toISOString() })}\n`;
  });
  appendFileSync(file, lines.join(""));
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await openTree(visit, session.id);
  await visit.press("j", "j", "j");
  const cdp = await visit.page.createCDPSession();
  const found: string[] = [];
  for (const [view, shows] of [
    ["tree", /pi is here/],
    ["branch", /Message \d+/],
    ["message", /Why does the test fail/],
  ] as const) {
    if (view === "branch") await visit.press("Enter");
    if (view === "message") await visit.press("Escape", "1", "j");
    await visit.shows(shows, ".panel:not([inert])");
    for (const width of [390, 1_440]) {
      await visit.page.setViewport({ width, height: 900 });
      for (const [name, value] of [
        ["prefers-color-scheme", "light"],
        ["prefers-color-scheme", "dark"],
        ["forced-colors", "active"],
      ] as const) {
        await cdp.send("Emulation.setEmulatedMedia", { features: [{ name, value }] });
        await visit.isDrawn();
        await visit.shot(`tree-${view}-${width}-${value}`);
        for (const problem of await problems(visit, { boxes })) found.push(`${view} ${width} ${value}: ${problem}`);
      }
    }
  }
  expect(found).toEqual([]);
  expect(await visit.faults()).toEqual([]);
});
