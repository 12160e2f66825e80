import { expect, test } from "vitest";
import { readCall } from "../../../../../context/pruning/compress/call.ts";
import { breakerMessage } from "../../../../../context/pruning/compress/messages.ts";
import type { ResolveRules } from "../../../../../context/pruning/compress/resolve.ts";
import type { View } from "../../../../../context/pruning/compress/view.ts";
import { WAITS_FOR_USER } from "../../../../../context/pruning/mode.ts";
import { PRUNING_OFF } from "../../../../../context/pruning/switch.ts";
import { type Asked, block, call, half, problems, stage } from "./stage.ts";

const findings = (args: unknown): readonly string[] => {
  const read = readCall(args);
  return "findings" in read ? read.findings : [];
};

const whole = { topic: "Looking", ranges: [{ startId: "m001", endId: "m002", summary: "Found." }] };

test("arguments of a wrong shape are named, all of a call together and at most ten", () => {
  expect(findings({ ...whole, ranges: [whole.ranges[0], { startId: "m003", endId: "m004" }] })).toEqual([
    "ranges[1].summary is missing.",
  ]);
  expect(findings({ ...whole, ranges: [{ ...whole.ranges[0], summary: " \n" }] })).toEqual([
    "summary of ranges[0] is empty.",
  ]);
  expect(findings({ topic: "", ranges: [] })).toEqual(["topic is empty.", "ranges is empty."]);
  expect(findings({})).toEqual(["topic is missing.", "ranges is missing."]);
  expect(findings(undefined)).toEqual(["topic is missing.", "ranges is missing."]);
  expect(findings({ ...whole, topic: 5 })).toEqual(["topic is not a text."]);
  expect(findings({ ...whole, topic: "x".repeat(81) })).toEqual(["topic has 81 characters; the most are 80."]);
  expect(findings({ ...whole, ranges: ["m001–m002"] })).toEqual(["ranges[0] is not a range."]);
  expect(findings({ ...whole, ranges: "m001–m002" })).toEqual(["ranges is not a list of ranges."]);
  expect(findings({ ...whole, ranges: Array(17).fill(whole.ranges[0]) })).toEqual([
    "ranges has 17 entries; the most are 16.",
  ]);
  expect(findings({ ...whole, ranges: [{ ...whole.ranges[0], summary: "x".repeat(60_001) }] })).toEqual([
    "summary of ranges[0] has 60001 characters; the most are 60000.",
  ]);
  expect(findings({ ranges: Array(16).fill({}) })).toHaveLength(10);
});

test("a single range instead of the list, and JSON text instead of either, are accepted", () => {
  const expected = { call: whole };
  expect(readCall(whole)).toEqual(expected);
  expect(readCall({ ...whole, ranges: whole.ranges[0] })).toEqual(expected);
  expect(readCall({ ...whole, ranges: JSON.stringify(whole.ranges) })).toEqual(expected);
  expect(readCall({ ...whole, ranges: JSON.stringify(whole.ranges[0]) })).toEqual(expected);
  expect(readCall({ ...whole, reason: "full", ranges: [{ ...whole.ranges[0], why: 1 }] })).toEqual(expected);
});

/** m001, [m002 m003], m004, then the current turn. */
const shapes = ["u", "t2", "a", "u", "a", "u", "t1", "c"] as const;
const plain = stage({ shapes });
/** b1 holds m001–m003; b2 contains b1 and m004. b3 was removed. */
const nested = stage({
  shapes,
  blocks: [
    block("b1", [0, 1, 2, 3], { kind: "consumed", parent: "b2" }),
    block("b2", [0, 1, 2, 3, 4, 5]),
    block("b3", [6], { kind: "inactive" }),
  ],
});
const first = stage({ shapes, blocks: [block("b2", [0, 1, 2, 3, 4])] });

const table: readonly (readonly [
  name: string,
  view: View,
  ranges: readonly Asked[],
  message: string | readonly string[],
  rules?: Partial<ResolveRules>,
])[] = [
  ["malformed id", plain, [["m12x", "m004"]], '"m12x" is not an id. Use mNNN or bN as shown in the context.'],
  ["unknown id", plain, [["m001", "m412"]], "m412 does not exist. The newest id is m006."],
  ["unknown block", plain, [["b7", "m004"]], "b7 does not exist. There is none yet."],
  ["hidden id", nested, [["m002", "m006"]], "m002 is inside b2. Use b2."],
  ["consumed block", nested, [["b1", "m006"]], "b1 is part of b2. Use b2."],
  ["inactive block", nested, [["b3", "m006"]], "b3 is not active."],
  ["start after end", plain, [["m004", "m001"]], "m004 comes after m001. Use startId m001, endId m004."],
  [
    "overlap inside the call",
    plain,
    [
      ["m001", "m003"],
      ["m005", "m005"],
      ["m002", "m004"],
    ],
    "ranges[0] and ranges[2] overlap at m002–m003.",
    { minRangeTokens: 0 },
  ],
  ["one block only", nested, [["b2", "b2", "(b2)"]], "b2 alone is already compressed."],
  [
    "protected tail",
    stage({ shapes, usage: half }),
    [["m001", "m006"]],
    "m005–m006 belong to the 2 most recent turns and stay raw while usage is below 60 %.",
    { protectRecentTurns: 2 },
  ],
  [
    "protected tail of one",
    stage({ shapes: ["u", "a", "u", "t1", "t1", "c"], usage: half }),
    [["m001", "m004"]],
    "m004 belongs to the 2 most recent turns and stays raw while usage is below 60 %.",
    { protectRecentTurns: 2 },
  ],
  [
    "current turn",
    stage({ shapes: ["u", "a", "u", "a", "u", "c"], usage: { ...half, share: 0.7 } }),
    [["m001", "m003"]],
    "m003 belongs to the current turn and stays raw.",
    { protectRecentTurns: 4 },
  ],
  [
    "not compressible",
    stage({ shapes: ["u", "br", "u", "t1", "u", "c"] }),
    [["m001", "m003"]],
    "The range contains a branch summary.",
  ],
  ["missing placeholder", first, [["b2", "m004"]], "The summary must contain (b2) once; the range contains b2."],
  ["duplicate placeholder", first, [["b2", "m004", "(b2) and (b2)"]], "(b2) occurs 2 times."],
  [
    "foreign placeholder",
    first,
    [["m004", "m006", "As (b7) says."]],
    '(b7) is not in m004–m006. Write "compressed b7" to mention it.',
  ],
  [
    "range too small",
    plain,
    [["m001", "m001"]],
    "m001 is about 100 tokens; the minimum is 1000.",
    { minRangeTokens: 1_000 },
  ],
  [
    "no saving",
    plain,
    [["m001", "m003", "x".repeat(2_000)]],
    "The summary (500 tokens) is not smaller than 80 % of the range (500).",
  ],
  ["undelivered push", stage({ shapes, pending: ["m004"] }), [["m001", "m004"]], "m004 is still being delivered."],
  ["gone", stage({ shapes, gone: ["m900"] }), [["m900", "m004"]], "m900 is not in the context any more."],
];

for (const [name, view, ranges, message, changed] of table) {
  test(`a refused call gets the reason: ${name}`, () => {
    expect(problems(view, call(...ranges), changed)).toEqual([message].flat());
  });
}

test("a range with the requesting call is refused, and so is one with a compaction's summary", () => {
  const sibling = stage({ shapes: ["u", "t1", "s", "t1", "c"] });
  expect(problems({ ...sibling, own: 4 }, call(["m001", "m003"]))).toEqual([
    "The range contains this compress call.",
    "The range contains a compaction summary.",
  ]);
});

test("all problems of a call are reported together, each with its range", () => {
  expect(problems(plain, call(["m12x", "m4x"], ["m004", "m001"], ["m001", "m002", "(b7)"]))).toEqual([
    'ranges[0]: "m12x" is not an id. Use mNNN or bN as shown in the context.',
    'ranges[0]: "m4x" is not an id. Use mNNN or bN as shown in the context.',
    "ranges[1]: m004 comes after m001. Use startId m001, endId m004.",
    'ranges[2]: (b7) is not in m001–m003. Write "compressed b7" to mention it.',
  ]);
});

test("a refusal before the ranges are checked has its own text", () => {
  expect(WAITS_FOR_USER).toBe("Compression waits for the user in manual mode.");
  expect(breakerMessage(3)).toBe("Compression is paused after 3 failures; continue with the task.");
  expect(PRUNING_OFF).toBe("Pruning is off for this session.");
});
