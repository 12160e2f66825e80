import fc from "fast-check";

// biome-ignore format: a list of short texts
const words = ["word", "a", "`code`", "**bold**", "*em*", "~~gone~~", "[x](https://example.com)", "https://example.com", "&amp;"];
// biome-ignore format: a list of short texts
const beginnings = [
  "", "", "", "- ", "* ", "+ ", "1. ", "2. ", "7) ", "> ", ">", "# ", "### ", "    ", "  ", "   ", "\t", "- [x] ", "  - ",
  "   1. ", "- > ", "> - ", "---", "===", "***", "|", "```", "```js", "````", "~~~", "  ```", "   ```", "[a]: ", "<div>",
  "<!--", "-", "1.", "\\", "![", "-----|-----", "|---|---|", "| a | b |", " ",
];
const ends = ["", "", "", "\n", "\n", "\n\n", "\n\n", "\n\n\n", "  \n", "\\\n", "\r\n", "\r", " ", "\n \n"];

const part = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...words) },
  { weight: 1, arbitrary: fc.string({ maxLength: 3 }) },
);
const middle = fc.array(part, { maxLength: 4 }).map((parts) => parts.join(" "));
const sentence = middle.map((text) => `word ${text.replaceAll(/[\r\n`~]/g, " ")}`);

/** Text in which most beginnings of Markdown follow each other, of up to `maxLines` lines. */
export function randomMarkdown(maxLines: number): fc.Arbitrary<string> {
  const line = fc
    .tuple(fc.constantFrom(...beginnings), middle, fc.constantFrom(...ends))
    .map((parts) => parts.join(""));
  return fc.array(line, { maxLength: maxLines, size: "max" }).map((lines) => lines.join(""));
}

const list = fc
  .tuple(fc.constantFrom("- ", "* ", "1. ", "2) "), fc.array(sentence, { minLength: 1, maxLength: 4 }))
  .map(([mark, lines]) => lines.map((line) => `${mark}${line}`).join("\n"));

const code = fc
  .tuple(
    fc.constantFrom("", "- word\n", "1. word\n\n"),
    fc.array(fc.oneof(sentence, fc.constant("")), { maxLength: 5 }),
  )
  .map(([entry, lines]) => {
    const indent = " ".repeat(entry.indexOf(" ") + 1);
    return `${entry}${["```js", ...lines, "```"].map((line) => `${indent}${line}`).join("\n")}`;
  });

const single = fc
  .tuple(fc.constantFrom("", "", "# ", "> ", "- [x] ", "| a | b |\n|---|---|\n| ", "<div>"), sentence)
  .map((parts) => parts.join(""));

/** Markdown as people and models write it: paragraphs, lists with words, blocks of code that end. */
export function commonMarkdown(maxParts: number): fc.Arbitrary<string> {
  const any = fc.tuple(fc.oneof(single, list, code, fc.constant("***")), fc.constantFrom("\n", "\n\n", "\n\n\n"));
  return fc.array(any, { maxLength: maxParts, size: "max" }).map((parts) => parts.flat().join(""));
}
