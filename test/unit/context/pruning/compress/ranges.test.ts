import { expect, test } from "vitest";
import { candidatesIn } from "../../../../../context/pruning/compress/candidates.ts";
import { resolve } from "../../../../../context/pruning/compress/resolve.ts";
import type { View } from "../../../../../context/pruning/compress/view.ts";
import { readId } from "../../../../../context/pruning/compress/written-id.ts";
import { type Asked, block, call, half, problems, rules, stage } from "./stage.ts";

/** e0 m001 · e1 call, e2 m002, e3 m003 · e4 answer · e5 m004 · e6 answer · e7 m005 · e8 call, e9 m006 · e10 this call. */
const shapes = ["u", "t2", "a", "u", "a", "u", "t1", "c"] as const;
const plain = stage({ shapes });

function ranges(view: View, ...asked: readonly Asked[]) {
  const resolution = resolve(call(...asked), view, { ...rules, minRangeTokens: 0, minSavings: 0 });
  if (resolution.kind === "refused") throw new Error(resolution.problems.join("\n"));
  return resolution.ranges;
}
const entries = (view: View, ...asked: readonly Asked[]): string =>
  ranges(view, ...asked)
    .map(({ entryIds }) => entryIds.join(" "))
    .join(" | ");
const widened = (view: View, ...asked: readonly Asked[]): readonly string[] =>
  ranges(view, ...asked).flatMap((range) => range.widened);

test("an id is accepted in any case, with zeros, tags, quotes, brackets and blanks around it, and nothing else is guessed", () => {
  const same = ["m012", "M12", "m00012", "<dcp-message-id>m012</dcp-message-id>", ' "m012"', "[m12]", "(`m012`),\n"];
  for (const written of same) expect(readId(written)).toEqual({ kind: "message", id: "m012" });
  for (const written of ["b3", "B03", "(b3)", "“b3”"]) expect(readId(written)).toEqual({ kind: "block", id: "b3" });
  expect(readId("m1000")).toEqual({ kind: "message", id: "m1000" });
  for (const written of [
    "",
    "m",
    "12",
    "m0",
    "m12x",
    "m 12",
    "m-12",
    "m1.5",
    "m12–m15",
    "m1234567890",
    "x".repeat(9_999),
  ])
    expect(readId(written)).toBeUndefined();
});

test("a call stays with all its results, and the answer after them belongs to the range", () => {
  expect(entries(plain, ["m001", "m001"])).toBe("e0");
  expect(entries(plain, ["m001", "m002"])).toBe("e0 e1 e2 e3 e4");
  expect(entries(plain, ["m003", "m003"])).toBe("e1 e2 e3 e4");
  expect(entries(plain, ["m003", "m004"])).toBe("e1 e2 e3 e4 e5 e6");
  expect(widened(plain, ["m003", "m002"].toSorted() as [string, string])).toEqual([
    "The call of m002 is part of it.",
    "The answer after m003 is part of it.",
  ]);
  expect(widened(plain, ["m003", "m003"])).toEqual([
    "It begins with m002: calls stay with results.",
    "The answer after m003 is part of it.",
  ]);
  expect(widened(plain, ["m001", "m002"])).toEqual([
    "It ends with m003: calls stay with results.",
    "The answer after m003 is part of it.",
  ]);
});

test("an answer after the range stays if it belongs to the turns that stay", () => {
  const view = stage({ shapes: ["u", "t1", "u", "a", "u", "c"], usage: half });
  expect(entries(view, ["m001", "m003"])).toBe("e0 e1 e2 e3 e4");
  const recent = { ...rules, minRangeTokens: 0, protectRecentTurns: 2 };
  expect(resolve(call(["m001", "m002"]), view, recent).kind).toBe("resolved");
  expect(problems(view, call(["m001", "m003"]), recent)).toEqual([
    "m003 belongs to the 2 most recent turns and stays raw while usage is below 60 %.",
  ]);
});

test("unordered results, and messages between them, do not split a group", () => {
  const view = stage({ shapes: ["u", "t3", "u", "a", "u", "c"] });
  expect(entries(view, ["m003", "m003"])).toBe("e1 e2 e3 e4");
});

test("a block is included completely, with everything that it covers, and linked", () => {
  const view = stage({ shapes, blocks: [block("b4", [0, 1, 2, 3, 4])] });
  const [range] = ranges(view, ["b4", "m004", "Before: (b4). Then more."]);
  expect(range).toMatchObject({
    label: "b4–m004",
    entryIds: ["e0", "e1", "e2", "e3", "e4", "e5", "e6"],
    children: ["b4"],
    body: [{ text: "Before: " }, { block: "b4" }, { text: ". Then more." }],
    tokensBefore: 250,
  });
  // The block's current content: it is in its parent unchanged.
  expect(range?.tokensAfter).toBe(55);
});

test("a call can have several adjacent ranges", () => {
  expect(entries(plain, ["m002", "m003"], ["m004", "m004"], ["m001", "m001"])).toBe("e1 e2 e3 e4 | e5 e6 | e0");
});

test("above the limit only the current turn stays", () => {
  const view = (share: number) => stage({ shapes, usage: { ...half, share } });
  const asked = call(["m001", "m006"]);
  const recent = { protectRecentTurns: 4 };
  expect(problems(view(0.59), asked, recent)).toEqual([
    "m004–m006 belong to the 4 most recent turns and stay raw while usage is below 60 %.",
  ]);
  expect(problems(view(0.6), asked, recent)).toEqual([]);
  expect(problems(stage({ shapes }), asked, recent)).toEqual([
    "m004–m006 belong to the 4 most recent turns and stay raw.",
  ]);
});

test("candidates are the five largest consequences of a user's messages, and never ranges that would be refused", () => {
  const many = stage({
    shapes: [
      "u",
      "t9",
      "u",
      "t1",
      "a",
      "u",
      "br",
      "u",
      "t2",
      "a",
      "u",
      "t8",
      "u",
      "t7",
      "u",
      "t6",
      "u",
      "t5",
      "a",
      "u",
      "c",
    ],
  });
  const found = candidatesIn(many, { minTokens: 250, turns: 1 });
  expect(found).toHaveLength(5);
  for (const { startId, endId } of found)
    expect(problems(many, call([startId, endId]), { minRangeTokens: 250 })).toEqual([]);
  expect(found.map(({ tokens }) => tokens)).toEqual([1_100, 1_000, 900, 800, 800]);
  expect(candidatesIn(many, { minTokens: 5_000, turns: 1 })).toEqual([]);
  expect(candidatesIn(stage({ shapes: [] }), { minTokens: 0, turns: 1 })).toEqual([]);
});

test("compressed content is not a candidate", () => {
  const view = stage({ shapes, blocks: [block("b1", [0, 1, 2, 3, 4, 5, 6])] });
  expect(candidatesIn(view, { minTokens: 100, turns: 1 })).toEqual([{ startId: "b1", endId: "m006", tokens: 300 }]);
  expect(candidatesIn(view, { minTokens: 100, turns: 2 })).toEqual([]);
});
