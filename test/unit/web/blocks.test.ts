import fc from "fast-check";
import { expect, test } from "vitest";
import { blocksOf, GrowingMarkdown } from "../../../web/text/blocks.ts";
import { type BlockNode, nodesOf } from "../../../web/text/nodes.ts";
import { hostileTexts } from "../../helpers/hostile-texts.ts";
import { commonMarkdown, randomMarkdown } from "./random-markdown.ts";

/** The nodes without the white space of code, of which the lexer removes some more. */
function comparable(nodes: readonly BlockNode[]): unknown {
  return JSON.parse(JSON.stringify(nodes), (_key, value) =>
    value?.kind === "code" ? { ...value, text: value.text.replaceAll(/\s+/g, " ").trim() } : value,
  );
}

test("a text has the same blocks at every length as it grows letter by letter", () => {
  fc.assert(
    fc.property(randomMarkdown(8), (text) => {
      const growing = new GrowingMarkdown();
      for (let length = 1; length <= text.length; length += 1) {
        growing.append(text.charAt(length - 1));
        const atOnce = blocksOf(text.slice(0, length));
        if (JSON.stringify(growing.blocks) !== JSON.stringify(atOnce)) expect(growing.blocks).toEqual(atOnce);
      }
    }),
    { numRuns: 2_000 },
  );
});

test("a text that is longer than a part has the same blocks as it grows by pieces", () => {
  fc.assert(
    fc.property(randomMarkdown(400), fc.array(fc.integer({ min: 1, max: 900 }), { minLength: 1 }), (text, sizes) => {
      const growing = new GrowingMarkdown();
      for (let [at, turn] = [0, 0]; at < text.length; turn += 1) {
        const size = sizes[turn % sizes.length] ?? 1;
        growing.append(text.slice(at, at + size));
        at += size;
        if (turn % 64 === 0) expect(growing.blocks).toEqual(blocksOf(text.slice(0, at)));
      }
      expect(growing.blocks).toEqual(blocksOf(text));
    }),
    { numRuns: 200 },
  );
});

test("dividing a text into parts does not change what it is", () => {
  fc.assert(
    fc.property(commonMarkdown(60), (text) => {
      const divided = blocksOf(text).flatMap(({ nodes }) => nodes);
      expect(comparable(divided), JSON.stringify(text)).toEqual(comparable(nodesOf(text.replace(/\r\n?/g, "\n"))));
    }),
    { numRuns: 1_000 },
  );
});

test("growing keeps the objects of the blocks before the last part", () => {
  const paragraph = `${"Some words. ".repeat(30)}\n\n`;
  const growing = new GrowingMarkdown();
  growing.append(paragraph.repeat(10));
  const before = growing.blocks;
  growing.append("And more.");
  expect(growing.blocks.slice(0, before.length - 1)).toEqual(before.slice(0, -1));
  for (const [index, block] of before.slice(0, -1).entries()) expect(growing.blocks[index]).toBe(block);
});

test.each(hostileTexts)("shows all of $name, also as it grows", ({ text }) => {
  const growing = new GrowingMarkdown();
  const step = Math.max(1, Math.ceil(text.length / 40));
  for (let at = 0; at < text.length; at += step) growing.append(text.slice(at, at + step));
  expect(growing.blocks).toEqual(blocksOf(text));
  expect(growing.blocks.length).toBeGreaterThan(0);
});
