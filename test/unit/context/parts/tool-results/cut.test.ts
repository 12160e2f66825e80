import fc from "fast-check";
import { expect, test } from "vitest";
import { cutText, longestMark } from "../../../../../context/parts/tool-results/cut.ts";

const kept = { head: 500, tail: 1_000 };
const numbers = Array.from({ length: 400 }, (_, at) => `line ${at + 1}`).join("\n");
/** Texts with long and short lines, non-ASCII characters, and unpaired surrogates. */
const anyText = fc
  .array(fc.oneof(fc.string({ unit: "grapheme", maxLength: 300 }), fc.string({ unit: "binary", maxLength: 90 })))
  .map((lines) => lines.join("\n"));
const anyKept = fc.record({ head: fc.nat(400), tail: fc.nat(400) });

test("a cut text is no longer than head, tail and mark, is valid UTF-16, and has the beginning and the end", () => {
  fc.assert(
    fc.property(anyText, anyKept, (text, given) => {
      const made = cutText({ text }, given, "r001");
      if (made === undefined) return;
      expect(made.length).toBeLessThanOrEqual(given.head + given.tail + longestMark);
      expect(made.length).toBeLessThan(text.length);
      expect(made.isWellFormed()).toBe(true);
      const [head = "", tail = ""] = made.split(/\n?\[… cut: .* recall r001 …\]\n?/u);
      expect(text.toWellFormed().startsWith(head)).toBe(true);
      expect(text.toWellFormed().endsWith(tail)).toBe(true);
    }),
  );
});

test("a text is cut at the ends of lines, and its mark names the size and the id", () => {
  const made = cutText({ text: numbers }, kept, "r012") as string;
  expect(made).toMatch(/^line 1\nline 2\n/u);
  expect(made).toMatch(/\nline 399\nline 400$/u);
  expect(made).toContain(`\n[… cut: ${numbers.length} characters, 400 lines in all; recall r012 …]\nline `);
  expect(made.split("\n").every((line) => line.startsWith("[…") || /^line \d+$/u.test(line))).toBe(true);
});

test("a text without lines is cut between two characters", () => {
  const made = cutText({ text: "𝒳".repeat(5_000) }, { head: 501, tail: 1_001 }, "r001") as string;
  expect(made.isWellFormed()).toBe(true);
  expect(made.startsWith("𝒳".repeat(250))).toBe(true);
  expect(made.endsWith("𝒳".repeat(500))).toBe(true);
});

test("JSON is cut between its elements, and the mark counts them", () => {
  const elements = Array.from({ length: 200 }, (_, id) => ({ id, name: `a "quoted", name [${id}]` }));
  const made = cutText({ text: JSON.stringify(elements) }, kept, "r003") as string;
  const [head = "", tail = ""] = made.split(/\n\[… \d+ of 200 elements left out: .* …\]\n/u);
  const first = JSON.parse(`${head.slice(0, -1)}]`) as unknown[];
  const last = JSON.parse(`[${tail}`) as unknown[];
  expect(elements.slice(0, first.length)).toEqual(first);
  expect(elements.slice(-last.length)).toEqual(last);
  expect(made).toContain(`${200 - first.length - last.length} of 200 elements`);
});

test("JSON whose list is not outermost is cut in that list", () => {
  const text = JSON.stringify({ total: 3, items: Array.from({ length: 300 }, (_, id) => ({ id })) });
  const made = cutText({ text }, kept, "r003") as string;
  expect(made).toMatch(/"id":\d+\},\n\[… \d+ of 300 elements left out/u);
});

test("JSON of more than half a mebibyte is cut as text", () => {
  const listOf = (count: number) => JSON.stringify(Array.from({ length: count }, () => "12345678"));
  expect(cutText({ text: listOf(40_000) }, kept, "r001")).toContain("of 40000 elements");
  expect(cutText({ text: listOf(50_000) }, kept, "r001")).not.toContain("elements");
});

test("any JSON is cut within the limit", () => {
  fc.assert(
    fc.property(fc.json({ maxDepth: 6 }), anyKept, (text, given) => {
      const made = cutText({ text }, given, "r001");
      if (made === undefined) return;
      expect(made.length).toBeLessThanOrEqual(given.head + given.tail + longestMark);
      expect(made.isWellFormed()).toBe(true);
    }),
  );
});

test("an 800-character head does not lose the error at the end", () => {
  const text = `${"a warning that nobody reads\n".repeat(2_000)}FATAL: the disk is on fire`;
  expect(cutText({ text }, { head: 500, tail: 1_000 }, "r001")).toMatch(/FATAL: the disk is on fire$/u);
  expect(cutText({ text }, { head: 0, tail: 2_000 }, "r001")).toMatch(/FATAL: the disk is on fire$/u);
});

test("if only the end of an output is available, the head still comes from the whole output", () => {
  const made = cutText({ text: numbers, whole: `the very first line\n${numbers}` }, kept, "r001") as string;
  expect(made).toMatch(/^the very first line\nline 1\n/u);
  expect(made).toContain("401 lines in all");
});

test("a text that would not become shorter stays unchanged", () => {
  expect(cutText({ text: "x".repeat(1_540) }, kept, "r001")).toBeUndefined();
});
