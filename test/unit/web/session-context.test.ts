import { expect, test } from "vitest";
import { type Result, WireError } from "../../../client/browser.ts";
import { limitsOf, lostAt, mostLost, partsOf, windowOf } from "../../../web/state/context-facts.ts";
import { type Inspected, KnownContext, type Pruned } from "../../../web/state/session-context.ts";
import { FakeDaemon, settled } from "./fake-daemon.ts";
import { FakePage } from "./fake-page.ts";

const sessionId = "one";
const window: Inspected["window"] = {
  tokens: 200_000,
  used: 1_000,
  byKind: { system: 100, tools: 200, user: 50, assistant: 0, toolResults: 640, later: 10 },
  masked: [],
};
const inspected: Inspected = { configuration: {}, parts: {}, window };
const sizes = { children: [], isShortened: false, tokensBefore: 900, tokensAfter: 70 };
const pruned: Pruned = {
  configuration: {},
  mode: "automatic",
  window: { tokens: 200_000, used: 1_000, max: 160_000, min: 80_000 },
  byKind: {},
  messages: [
    { id: "m001", entryId: "a", role: "user", tokens: 10 },
    { id: "m002", entryId: "b", role: "assistant", tokens: 400, block: "b1" },
    { id: "m003", entryId: "c", role: "toolResult", tokens: 500, block: "b1" },
    { id: "m004", entryId: "d", role: "user", tokens: 30 },
  ],
  blocks: [{ id: "b1", topic: "Old", state: "active", startId: "m002", endId: "m003", ...sizes }],
  candidates: [],
};

function opened() {
  const daemon = new FakeDaemon();
  const page = new FakePage();
  return { daemon, page, context: new KnownContext({ daemon, page, sessionId }) };
}

test("what fills the window is shown by kind with the same sum, and a kind of a newer pi is among the others", () => {
  const parts = partsOf(window);
  expect(parts.map(({ kind, tokens }) => [kind, tokens])).toEqual([
    ["system", 100],
    ["tools", 200],
    ["user", 50],
    ["toolResults", 640],
    ["custom", 10],
  ]);
  expect(parts.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(window.used);
});

test("a change loses at most the messages in the provider's cache, and of a block only what begins with it", () => {
  const usage = { input: 100, cacheRead: 700, cacheWrite: 0 };
  expect(mostLost(undefined, window)).toBeUndefined();
  expect(mostLost({ input: 800, cacheRead: 0, cacheWrite: 0 }, window)).toBe(0);
  expect([mostLost(usage, window), mostLost(usage, undefined)]).toEqual([500, 800]);
  const [block] = pruned.blocks;
  expect(lostAt({ startId: block?.startId ?? "" }, pruned, 500)).toBe(70 + 30);
  expect(lostAt({ startId: "m001" }, pruned, 500)).toBe(10 + 70 + 30);
  expect(lostAt({ startId: "m001" }, pruned, 90)).toBe(90);
  expect(lostAt({}, pruned, 500)).toBe(500);
});

test("the window is that of the model that is chosen now, not that of the last answer", () => {
  const chosen = { provider: "p", id: "one", name: "One" };
  expect(windowOf({ ...chosen, contextWindow: 500 }, "p/two", 900)).toBe(500);
  expect(windowOf(chosen, "p/one", 900)).toBe(900);
  expect(windowOf(chosen, undefined, 900)).toBe(900);
  expect(windowOf(undefined, "p/two", 900)).toBe(900);
  expect(windowOf(chosen, "p/two", 900)).toBeUndefined();
});

test("the limits of the window are those that are on, the lowest first", () => {
  const compaction = { enabled: true, thresholdPercent: 0.7, maxContextTokens: 100_000 };
  expect(limitsOf({ ...inspected, configuration: { compaction } }, pruned)).toEqual([
    { what: "reminds", tokens: 80_000 },
    { what: "compacts", tokens: 100_000 },
    { what: "tells", tokens: 160_000 },
  ]);
  expect(limitsOf(inspected, { ...pruned, off: "The tool is not active." })).toEqual([]);
  expect(limitsOf(inspected, undefined)).toEqual([]);
});

test("looking reads what is known and asks no pi, also after a run; a hidden page reads when it is shown", async () => {
  const { daemon, page, context } = opened();
  daemon.answer("optimisation/inspect", { ...inspected, cached: true, cachedAt: 5 });
  daemon.on("pruning/inspect", () => {
    throw new WireError("answer_unknown", "Nothing is known.", {});
  });
  const stop = context.look();
  await settled();
  expect(context.inspected.value).toMatchObject({ kind: "known", value: { cachedAt: 5 } });
  expect(context.pruned.value).toEqual({ kind: "unknown" });
  page.hide(true);
  daemon.notify({ name: "run/ended", params: { sessionId } } as never);
  await settled();
  expect(daemon.calls).toHaveLength(2);
  page.hide(false);
  await settled();
  expect(daemon.calls).toHaveLength(4);
  expect(daemon.calls.map(({ params }) => params)).toEqual(Array(4).fill({ sessionId, cached: true }));
  stop();
  daemon.notify({ name: "run/ended", params: { sessionId } } as never);
  await settled();
  expect([daemon.calls.length, daemon.subscriptions.length]).toEqual([4, 0]);
});

test("what was known stays when it is not known any more, but not the blocks of pruning that was turned off", async () => {
  const { daemon, context } = opened();
  daemon.answer("optimisation/inspect", inspected);
  daemon.answer("pruning/inspect", pruned);
  context.look();
  await settled();
  expect(context.pruned.value).toMatchObject({ kind: "known" });
  const refuse = (kind: "answer_unknown" | "pruning_disabled") => (): never => {
    throw new WireError(kind, "No.", {});
  };
  daemon.on("optimisation/inspect", refuse("answer_unknown"));
  daemon.on("pruning/inspect", refuse("pruning_disabled"));
  daemon.notify({ name: "pruning/changed", params: { sessionId } } as never);
  await settled();
  expect(context.inspected.value).toMatchObject({ kind: "known" });
  expect(context.pruned.value).toEqual({ kind: "refused", words: "No." });
});

test("asking starts a sleeping pi, an awake one is only asked, and a change is followed by the new figures", async () => {
  const { daemon, context } = opened();
  daemon.answer("optimisation/inspect", inspected);
  daemon.answer("pruning/inspect", pruned);
  daemon.answer("session/command", {});
  const change: Result<"pruning/sweep"> = { state: "done", blocks: [], pruned: [], tokens: 40, notes: [] };
  daemon.answer("pruning/sweep", change);
  daemon.answer("pruning/compress", { ...change, state: "asked" });
  daemon.answer("pruning/decompress", change);
  const asked = (): readonly unknown[] => daemon.calls.splice(0).map(({ method, params }) => [method, params]);
  const both = ["optimisation/inspect", "pruning/inspect"].map((method) => [method, { sessionId, cached: false }]);
  await context.ask(true);
  expect(asked()).toEqual([["session/command", { sessionId, command: { type: "get_state" } }], ...both]);
  await context.ask(false);
  expect(asked()).toEqual(both);
  expect(await context.sweep(undefined, false)).toEqual({ kind: "done", value: change });
  expect(asked()).toEqual([["pruning/sweep", { sessionId }], ...both]);
  await context.sweep(3, true);
  await context.compress("  the log ", true);
  await context.open("b1");
  expect(asked().filter((call) => !JSON.stringify(call).includes("inspect"))).toEqual([
    ["pruning/sweep", { sessionId, last: 3, wait: true }],
    ["pruning/compress", { sessionId, focus: "the log", wait: true }],
    ["pruning/decompress", { sessionId, block: "b1" }],
  ]);
  const compaction = { summary: "s", firstKeptEntryId: "a", tokensBefore: 900 };
  daemon.answer("session/compact", { compaction, deliveries: {} });
  expect(await context.compact(" the plan ")).toEqual({ kind: "done", value: compaction });
  expect(asked()).toEqual([["session/compact", { sessionId, customInstructions: "the plan" }], ...both]);
  daemon.on("pruning/sweep", () => {
    throw new WireError("pruning_disabled", "Pruning is off.", {});
  });
  expect(await context.sweep(undefined, false)).toEqual({ kind: "refused", words: "Pruning is off." });
});
