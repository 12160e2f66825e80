import fc from "fast-check";
import { expect, test } from "vitest";
import { globOf, wildcardOf } from "../../../protocol/glob.ts";

test.each([
  ["*.md", "a.md", true],
  ["*.md", "docs/a.md", false],
  ["**/*.md", "a.md", true],
  ["**/*.md", "docs/deep/a.md", true],
  ["docs/**", "docs/deep/a.md", true],
  ["docs/**/a.md", "docs/a.md", true],
  ["docs/**/a.md", "docs/x/y/a.md", true],
  ["docs/**/a.md", "docs/xa.md", false],
  ["docs/**", "other/a.md", false],
  ["a?c", "abc", true],
  ["a?c", "a/c", false],
  ["[a-c]x", "bx", true],
  ["[!a-c]x", "bx", false],
  ["[!a-c]x", "dx", true],
  ["[]x", "[]x", true],
  ["*.{ts,tsx}", "a.tsx", true],
  ["{a,b{c,d}}", "bd", true],
  ["{a}", "{a}", true],
  ["docs/**/", "docs/", true],
  ["**/a", "a", true],
  ["**/a", "ba", false],
  ["abc", "bc", false],
  ["bc", "abc", false],
  ["a{b", "a{b", true],
  ["mcp__*__get", "mcp__x__get", true],
  ["😀?", "😀😀", true],
  ["", "", true],
  ["", "a", false],
])("%s on %s: %s", (pattern, text, fits) => {
  expect(globOf(pattern)(text)).toBe(fits);
});

test("no glob takes long, whatever it is matched with", () => {
  const pattern = `${"*a".repeat(250)}b`;
  expect(globOf(pattern)("a".repeat(4_096))).toBe(false);
  expect(globOf("{a,b}".repeat(100))("a".repeat(100))).toBe(false);
  expect(globOf("**")("a".repeat(5_000))).toBe(false);
});

test("a wildcard matches any text for each star, and every other character literally", () => {
  const sign = fc.constantFrom("a", "b", ".", "*", " ", "(", "/", "?", "[", "{");
  const text = fc.array(sign, { maxLength: 8 }).map((signs) => signs.join(""));
  fc.assert(
    fc.property(text, text, (given, pattern) => {
      const parts = pattern.split("*").map((part) => part.replace(/[.() /?[{]/g, "\\$&"));
      expect(wildcardOf(pattern)(given)).toBe(new RegExp(`^${parts.join(".*")}$`).test(given));
    }),
  );
});

test("a hostile wildcard takes no longer", () => {
  expect(wildcardOf(`${"a*".repeat(120)}b`)("a".repeat(100_000))).toBe(false);
  expect(wildcardOf(`${"a*".repeat(60)}b*`)("a".repeat(10_000))).toBe(false);
});
