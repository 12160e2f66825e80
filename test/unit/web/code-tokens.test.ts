import { expect, test } from "vitest";
import { isKnownLanguage, tokensOf } from "../../../web/text/code-tokens.ts";

function read(code: string, language: string): readonly string[] {
  return [...tokensOf(code, language)].flat().map(({ kind, start, end }) => `${kind} ${code.slice(start, end)}`);
}

test("parts of a code have their kinds, in order, without an overlap", () => {
  const code = 'const a = "x"; // why\nreturn 1;';
  expect(read(code, "ts")).toEqual(["keyword const", 'string "x"', "comment // why", "keyword return", "value 1"]);
  expect(read('{"a": [1, true]}', "json")).toEqual(['attribute "a"', "value 1", "keyword true"]);
  expect(read("+ one\n- two\n", "diff")).toEqual(["added + one", "removed - two"]);
});

test("what is put into a string is no string, and a script in HTML has the tokens of its language", () => {
  expect(read(["`a $", "{b} c`"].join(""), "js")).toEqual(["string `a ", "string  c`"]);
  const script = '<a href="x"><script>const b = 1</script>';
  expect(read(script, "html")).toEqual(expect.arrayContaining(['string "x"', "keyword const", "value 1"]));
});

test.each(["TS", "tsx", "jsx", "c", "cc", "toml", "yml", "sh", "html", "py", "rs"])(
  "%s is a known language",
  (name) => {
    expect(isKnownLanguage(name)).toBe(true);
  },
);

test.each(["", "brainfuck", "__proto__", "constructor", "toString"])("%j is no known language", (name) => {
  expect(isKnownLanguage(name)).toBe(false);
});

test.each([
  ["ts", "\n".repeat(20_000)],
  ["ts", "a(".repeat(10_000)],
  ["cpp", "a::".repeat(6_000)],
  ["html", "<a b=".repeat(4_000)],
  ["py", `"""${"x".repeat(19_000)}`],
  ["js", "`${".repeat(6_000)],
])("pieces of hostile code in %s are bounded, and their tokens are within them", (language, code) => {
  let end = 0;
  let pieces = 0;
  for (const tokens of tokensOf(code, language)) {
    pieces += 1;
    for (const token of tokens) {
      expect(token.start).toBeGreaterThanOrEqual(end);
      expect(token.end).toBeGreaterThan(token.start);
      end = token.end;
    }
  }
  expect(end).toBeLessThanOrEqual(code.length);
  expect(pieces).toBeGreaterThanOrEqual(Math.ceil(code.length / 1_024));
});
