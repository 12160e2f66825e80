import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { expect, test } from "vitest";
import type { AuditMemory } from "../../../../context/parts/cache/auditor.ts";
import { CacheLedger } from "../../../../context/parts/cache/cache-ledger.ts";
import { recordData } from "../../../../context/parts/recall/record.ts";
import { RecallRegistry } from "../../../../context/parts/recall/registry.ts";
import { createCacheLosses } from "../../../../context/pruning/cache-losses.ts";
import type { BlockRecord } from "../../../../context/pruning/record.ts";
import { createStats } from "../../../../context/pruning/stats.ts";
import { BoundaryWriter } from "../../../../extension/boundary.ts";
import { PruningStats } from "../../../../protocol/pruning/report.ts";
import { partial, unchecked } from "../../../helpers/partial.ts";
import { Branch } from "./branch.ts";

const cost = { input: 3, output: 15, cacheRead: 0.3, cacheWrite: 3.75 };

function block(id: string, tokensBefore: number, tokensAfter: number, children: readonly string[] = []): BlockRecord {
  const range = { firstEntryId: "e1", lastEntryId: "e1", entryIds: ["e1"] };
  return { id, ...range, children, body: [{ text: id }], kept: [], tokensBefore, tokensAfter };
}

const removed = (part: string, number: number, tokens: number, entryId = "e1") =>
  recordData(part, [{ number, part, tool: "read", tokens, place: { kind: "entry", entryId } }], {
    tokens: 500,
    usd: 0.01,
    requests: 0,
    savedUsd: 0,
  });

/** The counts of a session of these entries. */
function counting(branch: Branch, ledger?: CacheLedger, sessionId = "s1") {
  const registry = new RecallRegistry();
  const audit = { value: ledger === undefined ? undefined : partial<AuditMemory>({ ledger, sessionId }) };
  const boundary = new BoundaryWriter((_where, thrown) => {
    throw thrown;
  });
  const active = [{ ...block("b2", 900, 100, ["b1"]), topic: "All", state: { kind: "active" }, entryId: "x" }];
  const b1 = { ...block("b1", 1_000, 200), topic: "One", state: { kind: "consumed", parent: "b2" }, entryId: "x" };
  const host = {
    recall: {
      registry,
      masked: () => [
        { part: "deduplication", tokens: 50 },
        { part: "masking", tokens: 7 },
      ],
    },
    blocks: { on: () => ({ active, all: [b1, ...active], find: (id: string) => (id === "b1" ? b1 : undefined) }) },
    estimator: { text: (text: string) => text.length },
    pi: { getAllTools: () => [] },
    boundary,
  };
  const losses = createCacheLosses(unchecked(host), audit);
  const stats = createStats(unchecked(host), { section: () => "four", echoes: () => 2, losses });
  const ctx = partial<ExtensionContext>({ sessionManager: managerOf(branch), model: { cost } });
  return {
    stats: () => stats(ctx),
    boundary: () => boundary.write({ hook: "turn_end", state: partial({ entries: [], continue: false }), ctx }),
  };
}

function managerOf(branch: Branch) {
  const byId = () => new Map(branch.entries.map((entry) => [entry.id, entry]));
  return {
    getSessionId: () => "s1",
    getEntries: () => branch.entries,
    getEntry: (id: string) => byId().get(id),
    getLeafEntry: () => byId().get(branch.leaf ?? ""),
  };
}

test("stats grow with every request: every removal is counted once, however often it is requested", () => {
  const branch = new Branch();
  branch.user("Go on.");
  branch.add({ type: "custom", customType: "pi-rpcd.recall", data: removed("deduplication", 1, 50) });
  branch.add({ type: "custom", customType: "pi-rpcd.recall", data: removed("masking", 2, 7) });
  // The same again, on another branch of the file.
  branch.add({ type: "custom", customType: "pi-rpcd.recall", data: removed("deduplication", 1, 50) });
  branch.compress("One", block("b1", 1_000, 200));
  branch.compress("All", block("b2", 900, 100, ["b1"]));
  branch.call("compress", {}, "no", { isError: true });
  const { stats } = counting(branch);
  const first = stats();
  const nothing = { missedTokens: 0, missedUsd: 0, requests: 0, savedUsd: 0 };
  const predicted = { ...nothing, missedTokens: 500, missedUsd: 0.01 };
  const edit = { part: "deduplication", freedTokens: 50, isOver: false, predicted, actual: nothing };
  expect(first).toEqual({
    now: 50 + 800 + 800,
    removed: { count: 3, tokens: 1_650 },
    blocks: [
      { id: "b1", topic: "One", tokens: 800 },
      { id: "b2", topic: "All", tokens: 800 },
    ],
    strategies: { deduplication: { count: 1, tokens: 50 } },
    cache: { misses: 2, tokens: 1_000, usd: 0.02 },
    net: { tokens: 650, usd: (1_650 * 0.3) / 1e6 - 0.02 },
    // Each batch on the branch, not that of masking.
    edits: {
      count: 2,
      predicted: { ...nothing, missedTokens: 1_000, missedUsd: 0.02 },
      actual: nothing,
      recent: ["e2", "e4"].map((entryId) => ({ ...edit, entryId })),
    },
    standing: { system: 4, tool: 0 },
    calls: { succeeded: 2, failed: 1 },
    echoes: 2,
  });
  for (let request = 0; request < 100; request += 1) expect(stats()).toEqual(first);
  // The daemon adds these if it answers with pi's last answer.
  const { cached, cachedAt, outdated, ...counted } = PruningStats.properties;
  expect([cached, cachedAt, outdated].every((property) => property !== undefined)).toBe(true);
  expect(Object.keys(first).toSorted()).toEqual(Object.keys(counted).toSorted());
});

test("cache losses caused by pruning are measured, and those measured by another process count once", () => {
  const branch = new Branch();
  branch.user("Go on.");
  const lose = (ledger: CacheLedger, cause: string, missedTokens: number): void =>
    ledger.broken(partial({ cause, missedTokens, missedUsd: 0.5 }));
  const one = new CacheLedger();
  lose(one, "edit:deduplication", 1_000);
  lose(one, "edit:pruning", 200);
  lose(one, "edit:foreign", 77);
  lose(one, "edit:masking", 77);
  const before = counting(branch, one);
  const cache = { misses: 2, tokens: 1_200, usd: 1 };
  expect(before.stats().cache).toEqual(cache);
  const answer = before.boundary() as { readonly entries: readonly object[] };
  expect(answer.entries).toHaveLength(1);
  branch.add(unchecked(answer.entries[0]));
  expect(before.boundary()).toBeUndefined();
  expect(before.stats().cache).toEqual(cache);
  const two = new CacheLedger();
  const after = counting(branch, two);
  expect(after.stats().cache).toEqual(cache);
  lose(two, "edit:sweep", 100);
  expect(after.stats().cache).toEqual({ misses: 3, tokens: 1_300, usd: 1.5 });
  // The previous session in the process is not ours.
  const foreign = counting(branch, two, "s0");
  expect([foreign.stats().cache, foreign.boundary()]).toEqual([cache, undefined]);
  // Numbers in a hand-edited file are not ours.
  for (const data of [
    null,
    { v: 1, life: 1 },
    { v: 1, life: "x", misses: Number.POSITIVE_INFINITY, tokens: -1, usd: "1" },
  ]) {
    branch.add({ type: "custom", customType: "pi-rpcd.pruning-losses", data });
  }
  expect(counting(branch).stats().cache).toEqual(cache);
});

test("sums of hand-edited values stay numbers", () => {
  const branch = new Branch();
  branch.user("Go on.");
  for (const at of [1, 2]) {
    const data = recordData(
      "deduplication",
      [{ number: at, part: "deduplication", tool: "read", tokens: 1e308, place: { kind: "entry", entryId: "e1" } }],
      { tokens: 1e308, usd: 1e308, requests: 1e308, savedUsd: 1e308 },
    );
    branch.add({ type: "custom", customType: "pi-rpcd.recall", data });
    branch.compress("One", block(`b${at}`, 1e308, 0));
    const losses = { v: 1, life: `life${at}`, misses: 1e308, tokens: 1e308, usd: 1e308 };
    branch.add({ type: "custom", customType: "pi-rpcd.pruning-losses", data: losses });
  }
  const { removed: all, cache, net } = counting(branch).stats();
  expect([all.tokens, cache, net]).toEqual([
    0,
    { misses: 0, tokens: 0, usd: 0 },
    { tokens: expect.any(Number), usd: expect.any(Number) },
  ]);
});
