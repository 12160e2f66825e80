import { expect, test } from "vitest";
import { digestOf, placeholderOf } from "../../../../../context/parts/recall/placeholder.ts";

const usual = { tool: "read", text: "one\ntwo\n", images: 0, isError: false, why: "masked", recallId: "r012" };

test("a placeholder names tool, arguments, size, state and id, and mentions no summary", () => {
  expect(placeholderOf({ ...usual, args: { path: "src/a.ts" } })).toBe(
    "[read src/a.ts: 8 B, 2 lines, ok; masked; recall r012]",
  );
  expect(placeholderOf({ ...usual, text: "x".repeat(14_336), why: "pruned, repeated below" })).toBe(
    "[read: 14.0 KB, 2 lines, ok; pruned, repeated below; recall r012]",
  );
  expect(placeholderOf({ ...usual, text: "", images: 2 })).toBe("[read: 2 images, ok; masked; recall r012]");
});

test("it says how a command failed", () => {
  const text = "npm ERR!\n\nCommand exited with code 3";
  expect(placeholderOf({ ...usual, tool: "bash", text, isError: true })).toContain("3 lines, exit code 3; masked");
  expect(placeholderOf({ ...usual, isError: true })).toContain("2 lines, error; masked");
});

test.for<[unknown, string]>([
  [{ limit: 3, command: "npm\n  test" }, "npm test"],
  [{ depth: 2, all: true }, '{"depth":2,"all":true}'],
  [{}, ""],
  ["text", ""],
  [undefined, ""],
  [{ path: "x".repeat(100) }, `${"x".repeat(79)}…`],
  [{ path: `${"x".repeat(78)}𝒳𝒳` }, `${"x".repeat(78)}\uFFFD…`],
])("the arguments %j are %j", ([args, digest]) => {
  expect(digestOf(args)).toBe(digest);
});
