import { join } from "node:path";
import { expect, test } from "vitest";
import type { SessionHandle } from "../../client/index.ts";
import { answer, call, thinking } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { type Stage, startStage } from "../helpers/stage.ts";
import { problems } from "./console-axe.ts";
import { ConsoleBrowser, consoleAddress, type Visit } from "./console-browser.ts";

const boxes = "html, body, .page, .main, .figures, .context-view, .panel, .side, dialog";
const fills = ["input", "cacheRead", "cacheWrite", "output", "accent"].map((fill) => `.context-view .fill-${fill}`);

const emitting = join(import.meta.dirname, "..", "fixtures", "extension", "emitting.ts");

/** A session with thinking, a push, outputs of which one was shortened, and pruning. */
async function talked(stage: Stage, isPruning = true): Promise<SessionHandle> {
  const { client, cwd, provider } = stage;
  const session = await client.createSession({
    ...{ cwd, model: "scripted/model-1", extensions: [emitting] },
    pruning: { enabled: isPruning, protectRecentTurns: 1, strategies: { deduplication: { enabled: false } } },
    optimisation: { toolResults: { enabled: true }, compaction: { enabled: true } },
  });
  provider.add(
    answer(thinking("I count them. ".repeat(20)), call("bash", { command: "seq 1 4000" })),
    answer(call("emit", { text: "a line of output\n", times: 400 })),
    answer("It is counted."),
  );
  await session.push({ customType: "n", content: "The build is green. ".repeat(20), deliverAs: "nextTurn" }).accepted;
  await session.promptAndWait("Count, and emit.");
  await session.promptAndWait("And now?");
  return session;
}

async function openContext(stage: Stage, browser: ConsoleBrowser): Promise<Visit> {
  const visit = await browser.visit(await consoleAddress(stage.client));
  await visit.clickOn(".row-name");
  await visit.shows(/And now\?/, ".log");
  await visit.press("3");
  return visit;
}

/** The numbers of the tables as the page has them, not rounded. */
function figures(visit: Visit, heading: string): Promise<readonly number[]> {
  return visit.page.evaluate((name) => {
    const sections = Array.from(document.querySelectorAll(".context-view section"));
    const section = sections.find((one) => one.querySelector("h2")?.textContent === name);
    return Array.from(section?.querySelectorAll<HTMLDataElement>("td data") ?? [], ({ value }) => Number(value));
  }, heading);
}

test("looking at the context of a sleeping session starts no pi, its kinds add up, and a message is found", async () => {
  await using stage = await startStage();
  const session = await talked(stage);
  const { id: sessionId } = session;
  await fallAsleep(stage.client, sessionId);
  const { window } = await stage.client.call("optimisation/inspect", { sessionId });
  const before = await session.get();
  await using browser = await ConsoleBrowser.open();
  const visit = await openContext(stage, browser);
  await visit.shows(/Tool results/, ".context-view");
  const kinds = await figures(visit, "What fills it");
  expect(kinds.toSorted()).toEqual(Object.values(window.byKind).toSorted());
  expect(kinds.reduce((sum, one) => sum + one, 0)).toBe(window.used);
  await visit.shows(/of\s+200k tokens, \d+ %/, ".context-view");
  await visit.shows(/One output, about\s+[\d.]+k? tokens, left the context/, ".context-view");
  await visit.shows(/Context\s+[\d.]+k? of 200k, /, ".side");
  expect(await figures(visit, "Largest messages")).toEqual((window.largest ?? []).slice(0, 8).map((one) => one.tokens));
  const after = await session.get();
  expect([after.state, after.generation, after.cursor]).toEqual(["hibernated", before.generation, before.cursor]);

  await leadsToOutput(visit);
  expect(await visit.faults()).toEqual([]);

  // A page that may only look is refused with the option that allows it, before a pi is started.
  const { url, code } = await stage.client.call("web/open", { print: true, readOnly: true });
  const reader = await browser.visit(`${url}#${code}`);
  await reader.clickOn(".row-name");
  await reader.shows(/And now\?/, ".log");
  await reader.press("3");
  await reader.click("Compress…");
  await reader.shows(/The session sleeps: this starts its pi/, "dialog");
  await reader.click("Ask the model");
  await reader.shows(/Open the page again without --read-only/, "dialog");
  expect((await session.get()).generation).toBe(before.generation);
});

/** The largest message is the output of a tool: its row gets the focus. */
async function leadsToOutput(visit: Visit): Promise<void> {
  await visit.clickOn(".context-view tbody .link");
  await visit.holds(() => /^\s*emit/.test((document.activeElement as HTMLElement | null)?.innerText ?? ""));
}

test("pi is asked only by a press, and a change says before what the cache loses and after what came of it", async () => {
  await using stage = await startStage();
  const session = await talked(stage);
  const { id: sessionId } = session;
  await using browser = await ConsoleBrowser.open();
  const visit = await openContext(stage, browser);
  await visit.shows(/What fills the context is not known yet/, ".figures");
  await visit.click("Ask pi now");
  await visit.shows(/as pi has just said/, ".context-view");
  await leadsToOutput(visit);
  await visit.press("3");

  const { messages } = await stage.client.call("pruning/inspect", { sessionId });
  const ranges = [{ startId: messages[0]?.id ?? "", endId: messages[2]?.id ?? "", summary: "It was counted." }];
  await stage.client.call("pruning/compress", { sessionId, topic: "The count", ranges });
  await visit.shows(/The session has changed since/, ".context-view");
  await visit.click("Ask pi now");
  await visit.shows(/The count\s+A summary of \d+ tokens replaces/, ".context-view");
  await visit.clickOn(".context-blocks .button");
  await visit.shows(/No loss of the provider.s cache is expected/, "dialog");
  expect((await stage.client.call("pruning/inspect", { sessionId })).blocks).toMatchObject([{ state: "active" }]);
  await visit.click("Open it");
  await visit.shows(/Done\. The next request has about [\d,]+ tokens more/, "dialog");
  await visit.press("Escape");
  await visit.holds(() => document.querySelector("dialog") === null);
  await visit.shows(/The count\s+Open: its/, ".context-view");
  expect((await stage.client.call("pruning/inspect", { sessionId })).blocks).toMatchObject([{ state: "inactive" }]);

  // Without pruning the daemon's words say how it is turned on; for a sleeping session the button says that it starts pi.
  await stage.client.call("pruning/configure", { sessionId, pruning: { enabled: false } });
  await fallAsleep(stage.client, sessionId);
  await visit.click("Start pi and ask it");
  await visit.shows(/Pruning is off for this session; .* turns it on/, ".context-view");
  expect((await session.get()).generation).toBe(2);
  expect(await visit.faults()).toEqual([]);
});

test("compacting is among all actions in any view, says what it costs, and shows why it was refused or what came of it", async () => {
  await using stage = await startStage();
  const { client, provider } = stage;
  const session = await stage.session();
  provider.add(answer("It is short."));
  await session.promptAndWait("A short talk.");
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(client));
  await visit.clickOn(".row-name");
  await visit.shows(/It is short/, ".log");
  const open = async (): Promise<void> => {
    await visit.holds(() => document.querySelector(".side .session-facts") !== null);
    await visit.page.keyboard.down("Control");
    await visit.press("k");
    await visit.page.keyboard.up("Control");
    await visit.holds(() => document.activeElement?.matches(".actions input"));
    await visit.type("compact");
    await visit.press("Enter");
    await visit.shows(/pi asks the model for one summary/, "dialog");
  };
  await open();
  await visit.shows(/provider.s cache/, "dialog");
  await visit.click("Compact it");
  await visit.shows(/Nothing to compact/i, "dialog .is-bad");
  await visit.press("Escape");
  await visit.holds(() => document.querySelector("dialog") === null);

  provider.add(answer("It is long."), answer("The summary."));
  await session.promptAndWait("A long talk. ".repeat(8_000));
  await open();
  await visit.clickOn("dialog input");
  await visit.type("the plan");
  await visit.click("Compact it");
  await visit.shows(/Done\. The context had [\d,]+ tokens/, "dialog");
  const { entries } = await client.call("session/getEntries", { sessionId: session.id });
  expect(entries.filter(({ type }) => type === "compaction")).toHaveLength(1);
  expect(JSON.stringify(provider.requests.at(-1))).toContain("the plan");
  await visit.press("Escape");
  await visit.holds(() => document.querySelector("dialog") === null);
  expect(await visit.faults()).toEqual([]);
});

test("a sleeping session shows the models that pi has said, and only a press asks it again", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  const { id: sessionId } = session;
  stage.provider.add(answer("Hello."));
  await session.promptAndWait("Hi.");
  const { models } = await stage.client.call("model/list", { sessionId });
  await fallAsleep(stage.client, sessionId);
  await using browser = await ConsoleBrowser.open();
  const visit = await browser.visit(await consoleAddress(stage.client));
  await visit.clickOn(".row-name");
  await visit.shows(/Hello/, ".log");
  const offered = () =>
    visit.page.evaluate(() => document.querySelectorAll(".model-fields select:first-child option").length);
  await expect.poll(offered).toBe(models.length);
  expect(await session.get()).toMatchObject({ state: "hibernated", generation: 1 });
  await visit.click("Start pi and ask for its models");
  await expect.poll(async () => (await session.get()).generation).toBe(2);
  await visit.holds(() => document.querySelector(".model-fields button") === null);
  expect(await visit.faults()).toEqual([]);
});

test("axe finds nothing in the context, known or not, and only tables scroll sideways", async () => {
  await using stage = await startStage();
  const { id: sessionId } = await talked(stage);
  const inspect = async () => {
    await stage.client.call("optimisation/inspect", { sessionId });
    const { messages } = await stage.client.call("pruning/inspect", { sessionId });
    const ranges = [{ startId: messages[0]?.id ?? "", endId: messages[1]?.id ?? "", summary: "It was counted." }];
    await stage.client.call("pruning/compress", { sessionId, topic: "The count of the lines", ranges });
  };
  await using browser = await ConsoleBrowser.open();
  const visit = await openContext(stage, browser);
  const found: string[] = [];
  await visit.shows(/not known yet/, ".figures");
  found.push(...(await problemsIn(visit, "unknown")));
  await inspect();
  await visit.click("Ask pi now");
  await visit.shows(/The count of the lines/, ".context-view");
  found.push(...(await problemsIn(visit, "known")));
  await visit.click("Take outputs out…");
  await visit.shows(/Take outputs out of the context/, "dialog");
  found.push(...(await problemsIn(visit, "sheet")));
  expect(found).toEqual([]);
  expect(await visit.faults()).toEqual([]);
});

async function problemsIn(visit: Visit, state: string): Promise<readonly string[]> {
  const cdp = await visit.page.createCDPSession();
  const found: string[] = [];
  for (const width of [390, 1_440]) {
    await visit.page.setViewport({ width, height: 900 });
    for (const scheme of ["light", "dark"]) {
      await cdp.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
      await visit.isDrawn();
      const where = `context-${state} ${width} ${scheme}`;
      await visit.shot(where.replaceAll(" ", "-"));
      for (const problem of await problems(visit, { boxes, fills })) found.push(`${where}: ${problem}`);
    }
  }
  await cdp.detach();
  return found;
}
