import fc from "fast-check";
import { expect, test } from "vitest";
import { keepPending, type PendingCuts } from "../../../../../context/parts/recall/pending-cuts.ts";
import {
  cutData,
  numberOf,
  type RecallRecord,
  recallIdOf,
  recordData,
  recordMark,
} from "../../../../../context/parts/recall/record.ts";
import { RecallRegistry, type RecallSession } from "../../../../../context/parts/recall/registry.ts";
import type { SessionEntry } from "../../../../../extension/pi-types.ts";

const record = (number: number, more: Partial<RecallRecord> = {}): RecallRecord => ({
  number,
  part: "masking",
  tool: "read",
  tokens: 10,
  place: { kind: "entry", entryId: `t${number}` },
  ...more,
});
const cost = { tokens: 5, usd: 0.5, requests: 3, savedUsd: 2 };
const sum = "ab".repeat(32);
const spilled = { kind: "spill", sha256: sum, bytes: 7 } as const;

const batch = (id: string, ...records: readonly RecallRecord[]): SessionEntry =>
  custom(id, recordData("masking", records, cost));
const custom = (id: string, data: unknown): SessionEntry =>
  ({ type: "custom", id, parentId: null, customType: "pi-rpcd.recall", data }) as unknown as SessionEntry;
const result = (id: string, details: unknown): SessionEntry =>
  ({ type: "message", id, message: { role: "toolResult", details } }) as unknown as SessionEntry;
const cutResult = (id: string, toolCallId: string, number: number): SessionEntry => {
  const text = `a\n[… cut: 9000 characters, 9 lines in all; recall ${recallIdOf(number)} …]\nb`;
  const message = { role: "toolResult", toolCallId, content: [{ type: "text", text }], details: { theirs: 1 } };
  return { type: "message", id, message } as unknown as SessionEntry;
};

function sessionOf(entries: readonly SessionEntry[], id = "s1"): RecallSession {
  return { getSessionId: () => id, getEntries: () => [...entries] } as unknown as RecallSession;
}

test("numbers are unique in the whole file, and none is assigned twice", () => {
  const entries = [
    batch("b1", record(1), record(2)),
    result("x", { "pi-rpcd.recall": recordMark(record(7, { place: spilled })) }),
  ];
  const registry = new RecallRegistry();
  const session = sessionOf(entries);
  expect([registry.reserve(session), registry.reserve(session)]).toEqual([8, 9]);
  // Another branch of the file, or another pi, has continued.
  entries.push(batch("b2", record(12)));
  expect(registry.reserve(session)).toBe(13);
  expect(registry.find(7, session)).toMatchObject({ heldBy: "x", place: spilled });
  expect(registry.ofEntry("t2", session)).toMatchObject([{ number: 2, heldBy: "b1" }]);
  expect(registry.ofEntry("x", session)).toMatchObject([{ number: 7 }]);
  expect(registry.batches(session)).toEqual([
    { part: "masking", cost, heldBy: "b1" },
    { part: "masking", cost, heldBy: "b2" },
  ]);
  expect(registry.spilledBytes(session)).toBe(7);
});

test("a cut is known by its stored result until an entry records it, and its number is reserved", () => {
  const entries: SessionEntry[] = [batch("b1", record(1))];
  const session = sessionOf(entries);
  const cuts: PendingCuts = new Map();
  const registry = new RecallRegistry(cuts);
  expect(registry.reserve(session)).toBe(2);
  keepPending(cuts, {
    sessionId: "s1",
    toolCallId: "c1",
    record: record(2, { part: "toolResults", place: spilled }),
  });
  // The modules are loaded again before the result is stored.
  const reloaded = new RecallRegistry(cuts);
  expect(reloaded.reserve(session)).toBe(3);
  expect(reloaded.spilledBytes(session)).toBe(7);
  expect(reloaded.unrecorded(session)).toEqual([]);
  entries.push(cutResult("other", "c0", 2), cutResult("x", "c1", 2));
  const held = { number: 2, heldBy: "x", place: { ...spilled, resultId: "x" } };
  expect(reloaded.find(2, session)).toMatchObject(held);
  expect(reloaded.ofEntry("x", session)).toMatchObject([held]);
  expect(reloaded.find(2, sessionOf(entries, "s2"))).toBeUndefined();

  entries.push(custom("k", cutData("toolResults", reloaded.unrecorded(session))));
  expect(reloaded.unrecorded(session)).toEqual([]);
  expect(cuts.size).toBe(0);
  const later = new RecallRegistry();
  expect(later.find(2, session)).toMatchObject(held);
  expect(later.ofEntry("x", session)).toMatchObject([held]);
  expect(later.batches(session)).toHaveLength(1);
});

test("a number whose record is lost is not assigned again, and a result's text can claim only a few", () => {
  const session = sessionOf([cutResult("x", "c1", 4), cutResult("y", "c2", 900), cutResult("z", "c3", 1_000_000)]);
  const registry = new RecallRegistry();
  expect(registry.reserve(session)).toBe(901);
  expect(registry.find(4, session)).toBeUndefined();
});

test("if there are too many cuts between two boundaries the oldest are dropped", () => {
  const cuts: PendingCuts = new Map();
  for (let number = 1; number <= 300; number += 1)
    keepPending(cuts, { sessionId: "s1", toolCallId: `c${number}`, record: record(number, { place: spilled }) });
  expect([cuts.size, cuts.has(44), cuts.has(45)]).toEqual([256, false, true]);
});

test("another session in the same pi has its own numbers", () => {
  const registry = new RecallRegistry();
  expect(registry.reserve(sessionOf([batch("b1", record(40))]))).toBe(41);
  const other = sessionOf([batch("b9", record(2))], "s2");
  expect(registry.find(40, other)).toBeUndefined();
  expect(registry.reserve(other)).toBe(3);
});

test("an entry that is written later takes no number away", () => {
  const session = sessionOf([
    batch("b1", record(1)),
    batch("b2", record(1, { place: { kind: "entry", entryId: "secret" } })),
  ]);
  expect(new RecallRegistry().find(1, session)?.place).toEqual({ kind: "entry", entryId: "t1" });
});

test("there are no numbers after the last", () => {
  const all = Array.from({ length: 10_000 }, (_, at) => record(Math.min((at + 1) * 100_000, 999_999_999)));
  expect(new RecallRegistry().reserve(sessionOf([batch("b1", ...all)]))).toBeUndefined();
});

test("a number invented by others takes none from ours", () => {
  const registry = new RecallRegistry();
  const session = sessionOf([
    batch("b1", record(1), record(999_999_999)),
    result("x", { "pi-rpcd.recall": recordMark(record(999_999_998, { place: spilled })) }),
    result("y", { "pi-rpcd.recall": recordMark(record(2)) }),
    batch("b2", record(100_002)),
  ]);
  expect([registry.reserve(session), registry.reserve(session)]).toEqual([2, 3]);
  expect(registry.find(999_999_998, session)).toMatchObject({ heldBy: "x" });
  for (let next = 4; next < 100_002; next += 1) registry.reserve(session);
  expect(registry.reserve(session)).toBe(100_003);
});

test("records that all name one entry are read in one pass", () => {
  const many = Array.from({ length: 40_000 }, (_, at) => record(at + 1, { place: { kind: "entry", entryId: "same" } }));
  const session = sessionOf([batch("b1", ...many)]);
  const registry = new RecallRegistry();
  expect(registry.ofEntry("same", session)).toHaveLength(40_000);
  expect(registry.reserve(session)).toBe(40_001);
});

test("foreign content of session files is ignored", () => {
  const wrong = fc.oneof(
    fc.jsonValue(),
    fc.record({ v: fc.constant(1), part: fc.constant("masking"), records: fc.jsonValue(), cost: fc.jsonValue() }),
    fc.record({
      v: fc.constant(1),
      part: fc.constant("masking"),
      records: fc.array(
        fc.dictionary(fc.constantFrom("id", "part", "tool", "tokens", "entryId", "sha256", "bytes"), fc.jsonValue()),
      ),
    }),
  );
  fc.assert(
    fc.property(wrong, (data) => {
      const session = sessionOf([custom("b1", data), result("x", { "pi-rpcd.recall": data }), result("y", data)]);
      const registry = new RecallRegistry();
      expect(registry.reserve(session)).toBe(1);
      expect(registry.all(session)).toEqual([]);
    }),
  );
});

test.for([
  ["r012", 12],
  [" [R12] ", 12],
  ["`r1234`", 1234],
  ["r000", undefined],
  ["r1234567890", undefined],
  ["012", undefined],
  ["b3", undefined],
  ["r12x", undefined],
] as const)("%j is read as %j", ([id, number]) => {
  expect(numberOf(id)).toBe(number);
});

test("an id has at least three digits", () => {
  expect([1, 12, 123, 1234].map(recallIdOf)).toEqual(["r001", "r012", "r123", "r1234"]);
});
