import { expect, test } from "vitest";
import { BlockLedger } from "../../../../../context/pruning/block-ledger.ts";
import { mostRanges, mostSummary, mostTopic, readCall } from "../../../../../context/pruning/compress/call.ts";
import { type Resolution, resolve } from "../../../../../context/pruning/compress/resolve.ts";
import { viewOf } from "../../../../../context/pruning/compress/view.ts";
import type { AgentMessage } from "../../../../../extension/pi-types.ts";
import { Random } from "../../../../soak/random.ts";
import { rules, stage } from "./stage.ts";

const junk: readonly unknown[] = [
  undefined,
  null,
  true,
  0,
  Number.NaN,
  "",
  " ",
  "m001",
  "[",
  "null",
  '"[]"',
  "[[]]",
  "{}",
  [],
  {},
  [null],
  [[]],
  { startId: 1 },
  "\ud800",
  "x".repeat(100_000),
];

function mangled(random: Random, value: unknown): unknown {
  if (random.chance(0.15)) return junk[random.integer(0, junk.length - 1)];
  if (random.chance(0.1)) return JSON.stringify(value);
  if (random.chance(0.05)) return [value];
  if (Array.isArray(value)) return value.map((one) => mangled(random, one));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).filter(() => !random.chance(0.05));
  return Object.fromEntries(entries.map(([key, one]) => [random.chance(0.03) ? `${key}s` : key, mangled(random, one)]));
}

test("malformed arguments of any kind are read, or each fault is named", () => {
  const random = new Random(612);
  const seen = { read: 0, named: 0 };
  for (let round = 0; round < 3_000; round += 1) {
    const range = { startId: "m001", endId: "m003", summary: "Found." };
    const made = readCall(mangled(random, { topic: "Looking", ranges: [range, range] }));
    if ("call" in made) {
      seen.read += 1;
      const { topic, ranges } = made.call;
      expect(topic.length).toBeLessThanOrEqual(mostTopic);
      expect(ranges.length > 0 && ranges.length <= mostRanges).toBe(true);
      for (const { startId, endId, summary } of ranges) {
        expect([startId, endId, summary].every((text) => text.isWellFormed() && text.trim() !== "")).toBe(true);
        expect(summary.length).toBeLessThanOrEqual(mostSummary);
      }
    } else {
      seen.named += 1;
      expect(made.findings.length > 0 && made.findings.length <= 10).toBe(true);
      for (const finding of made.findings) expect(finding).toMatch(/^(?:topic|ranges|\w+ of ranges)\b.{1,100}\.$/u);
    }
  }
  expect(seen.read).toBeGreaterThan(300);
  expect(seen.named).toBeGreaterThan(300);
});

const shapes = ["u", "t2", "a", "u", "t1", "t1", "a", "u", "a", "u", "t3", "u", "br", "u", "t1", "u", "c"] as const;
const ids = [
  "m001",
  "m002",
  "m3",
  "M004",
  "m005",
  "m006",
  "m007",
  "m008",
  "m012",
  "m013",
  "m020",
  "b1",
  "b2",
  "b3",
  "b9",
];

/** Mostly in order. */
function borders(random: Random): { readonly startId: string; readonly endId: string } {
  const [start = 0, end = 0] = [random.integer(0, ids.length - 1), random.integer(0, ids.length - 1)];
  const isInOrder = start <= end || random.chance(0.2);
  return { startId: ids[isInOrder ? start : end] ?? "", endId: ids[isInOrder ? end : start] ?? "" };
}

test("random calls in a row are refused with reasons, or make blocks that the branch accepts", () => {
  const random = new Random(9);
  const outcomes = new Map<Resolution["kind"], number>();
  for (let round = 0; round < 150; round += 1) {
    const ledger = new BlockLedger();
    for (let at = 0; at < 40; at += 1) ledger.passed(`e${at}`);
    let next = 1;
    for (let step = 0; step < 12; step += 1) {
      const view = stage({ shapes, tree: ledger.tree(), tokens: random.integer(20, 400) });
      const ranges = Array.from({ length: random.integer(1, 2) }, () => ({
        ...borders(random),
        summary: `Found. ${random.chance(0.5) ? random.pick(["(b1)", "(b2)", "(b1) (b2)", "\\(b1)"]) : ""}`,
      }));
      const placeholders = random.chance(0.7) ? "lenient" : "strict";
      const made = resolve({ topic: "Any", ranges }, view, { ...rules, placeholders });
      outcomes.set(made.kind, (outcomes.get(made.kind) ?? 0) + 1);
      if (made.kind === "refused") {
        expect(made.problems.length > 0 && made.problems.length <= 10).toBe(true);
        continue;
      }
      const blocks = made.ranges.map(({ entryIds, children, body, kept, tokensBefore, tokensAfter }) => {
        const [firstEntryId = ""] = entryIds;
        const lastEntryId = entryIds.at(-1) ?? "";
        const id = `b${next++}`;
        return { id, firstEntryId, lastEntryId, entryIds, children, body, kept, tokensBefore, tokensAfter };
      });
      ledger.made({ v: 1, topic: made.topic, blocks }, `r${next}`, undefined);
      for (const { id } of blocks) expect(ledger.tree().find(id)?.state).toEqual({ kind: "active" });
    }
  }
  expect(outcomes.get("resolved")).toBeGreaterThan(100);
  expect(outcomes.get("refused")).toBeGreaterThan(100);
});

test("a context of thousands of messages is processed in linear time", () => {
  const count = 20_000;
  const entries = Array.from({ length: count }, (_, at) => ({
    sourceEntry: { id: `e${at}` },
    messages: [{ role: at % 2 === 0 ? "user" : "assistant", content: [], timestamp: at } as unknown as AgentMessage],
  }));
  const view = viewOf({
    entries,
    idOf: (entryId) => `m${String(Number(entryId.slice(1)) + 1).padStart(3, "0")}`,
    entryOf: (id) => `e${Number(id.slice(1)) - 1}`,
    newestId: `m${count}`,
    tree: new BlockLedger().tree(),
    tokensOf: () => 10,
    isPending: () => false,
    usage: undefined,
  });
  const made = resolve(
    { topic: "All", ranges: [{ startId: "m001", endId: `m${count - 10}`, summary: "Found." }] },
    view,
    rules,
  );
  expect(made).toMatchObject({ kind: "resolved", ranges: [{ tokensBefore: 10 * (count - 10) }] });
});

test("and so is one of thousands of results of one call, which stay with it", () => {
  const count = 20_000;
  const call = { role: "assistant", content: [{ type: "toolCall", id: "c", name: "read", arguments: {} }] };
  const result = { role: "toolResult", toolCallId: "c", toolName: "read", content: [] };
  const { places } = viewOf({
    entries: Array.from({ length: count }, (_, at) => ({
      sourceEntry: { id: `e${at}` },
      messages: [(at === 1 ? call : at === count - 1 ? { role: "user" } : result) as unknown as AgentMessage],
    })),
    idOf: () => undefined,
    entryOf: () => undefined,
    newestId: undefined,
    tree: new BlockLedger().tree(),
    tokensOf: () => 10,
    isPending: () => false,
    usage: undefined,
  });
  const groups = new Set(places.map(({ from, to }) => `${from}–${to}`));
  expect([...groups]).toEqual(["0–0", `1–${count - 2}`, `${count - 1}–${count - 1}`]);
});
