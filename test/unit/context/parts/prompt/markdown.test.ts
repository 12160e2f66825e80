import fc from "fast-check";
import { expect, test } from "vitest";
import { markdownPieces, sectionEnd, sectionOf } from "../../../../../context/parts/prompt/markdown.ts";

const shape = (text: string) =>
  markdownPieces(text)
    .filter(({ kind }) => kind !== "blank")
    .map(({ kind, level, title, text: whole }) => (kind === "heading" ? `${level} ${title}` : whole.trimEnd()));

test("the pieces of any text add up to the text", () => {
  const line = fc.constantFrom(
    "# One",
    "## Two #",
    "Text",
    "",
    "  ",
    "```",
    "~~~~",
    "---",
    "===",
    "- item",
    "\t",
    "#not",
  );
  const lines = fc.array(fc.tuple(fc.oneof(line, fc.string()), fc.constantFrom("\n", "\r\n", "")), { maxLength: 30 });
  fc.assert(
    fc.property(lines, (given) => {
      const text = given.flat().join("");
      expect(
        markdownPieces(text)
          .map((piece) => piece.text)
          .join(""),
      ).toBe(text);
    }),
  );
});

test("headings are marked by signs before them or by the line below them", () => {
  expect(shape("# A\ntext\n\n## B ##\r\nC\n===\nD\n---\n")).toEqual(["1 A", "text", "2 B", "1 C", "2 D"]);
});

test("lines that only look like headings are not: items, a second line, issue tags, seven signs", () => {
  expect(shape("- item\n---\n\none\ntwo\n===\n\n#1234 is open\n\n####### seven\n")).toEqual([
    "- item\n---",
    "one\ntwo\n===",
    "#1234 is open",
    "####### seven",
  ]);
});

test("a fenced text is one piece, with its empty lines and signs", () => {
  expect(shape("Run:\n```sh\n# no heading\n\nmake\n```\nThen.\n\n~~~\n```\n# still\n~~~~\nEnd")).toEqual([
    "Run:\n```sh\n# no heading\n\nmake\n```\nThen.",
    "~~~\n```\n# still\n~~~~\nEnd",
  ]);
});

test("an unclosed fence extends to the end", () => {
  expect(shape("```\n# a\n\nb")).toEqual(["```\n# a\n\nb"]);
});

test("a section ends at the next heading that is not below its own", () => {
  const pieces = markdownPieces("# A\n\n## B\nb\n### C\nc\n## D\nd\n# E\n");
  const at = pieces.findIndex(({ title }) => title === "B");
  expect(sectionOf(pieces, at)).toBe("## B\nb\n### C\nc\n");
  expect(sectionEnd(pieces, 0)).toBe(pieces.length - 1);
});

test("the end of a section is searched only after its heading", () => {
  const pieces = markdownPieces("# A\n\ntext\n\n".repeat(1_000));
  let looked = 0;
  const watched = new Proxy(pieces, {
    get: (target, key, receiver) => {
      if (typeof key === "string" && /^\d+$/u.test(key)) looked += 1;
      return Reflect.get(target, key, receiver);
    },
  });
  const at = pieces.findLastIndex(({ kind }) => kind === "heading");
  expect(sectionEnd(watched, at)).toBe(pieces.length);
  expect(looked).toBeLessThan(10);
});
