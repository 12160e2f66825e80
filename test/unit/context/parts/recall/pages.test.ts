import fc from "fast-check";
import { expect, test } from "vitest";
import { countLines, longestLine, type Page, pageOf } from "../../../../../context/parts/recall/pages.ts";

const anyText = fc.oneof(
  fc.array(fc.string({ unit: "grapheme", maxLength: 60 })).map((lines) => lines.join("\n")),
  fc.string({ unit: fc.constantFrom("𝒳", "a", "\n"), minLength: 0, maxLength: 200 }).map((text) => text.repeat(300)),
);

test("consecutive pages make up the whole text, and each fits in a call", () => {
  fc.assert(
    fc.property(anyText, fc.integer({ min: 1, max: 50 }), (text, limit) => {
      const pages: Page[] = [];
      for (let offset = 1; ; ) {
        const page = pageOf(text, offset, limit, 50 * 1_024) as Page;
        expect(page.first).toBe(offset);
        expect(page.last - page.first).toBeLessThan(limit);
        expect(Buffer.byteLength(page.text)).toBeLessThanOrEqual(50 * 1_024);
        expect(page.text.isWellFormed()).toBe(true);
        expect(page.total).toBe(countLines(text));
        pages.push(page);
        if (page.last === page.total) break;
        offset = page.last + 1;
      }
      expect(pages.map((page) => page.text).join("")).toBe(text);
    }),
    { numRuns: 60 },
  );
});

test("a line without an end is recalled in pieces", () => {
  const text = "ü".repeat(3 * longestLine + 7);
  expect(pageOf(text, 1, 2_000, 50 * 1_024)).toEqual({
    text: "ü".repeat(2 * longestLine),
    first: 1,
    last: 2,
    total: 4,
  });
  expect(pageOf(text, 4, 1, 50 * 1_024)?.text).toHaveLength(7);
});

test("there is no page after the last line", () => {
  expect(pageOf("one\ntwo\n", 2, 1, 99)?.text).toBe("two\n");
  expect(pageOf("one\ntwo\n", 3, 1, 99)).toBeUndefined();
  expect(pageOf("", 1, 1, 99)).toEqual({ text: "", first: 1, last: 1, total: 1 });
});
