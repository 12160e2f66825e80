import { expect, test } from "vitest";
import { TextRing } from "../../../server/lib/text-ring.ts";

test("a TextRing keeps the end of the pushed text, within its limit, however the text is cut", () => {
  const ring = new TextRing(100);
  const text = "ä€😀x".repeat(200);
  for (const byte of Buffer.from(text)) ring.push(Buffer.from([byte]));
  const kept = ring.toString();
  expect(Buffer.byteLength(kept)).toBeLessThanOrEqual(100);
  expect(text.endsWith(kept)).toBe(true);
  expect(kept.length).toBeGreaterThan(10);
});

test("a TextRing accepts a chunk far above its limit", () => {
  const ring = new TextRing(10);
  ring.push(Buffer.from(`${"a".repeat(10_000)}the end`));
  expect(ring.toString()).toBe("aaathe end");
  expect([ring.size, ring.after(10_003, 100).toString(), ring.after(0, 3).toString()]).toEqual([10_007, " end", "end"]);
  expect([ring.after(0, 100).toString(), ring.after(10_007, 100).length]).toEqual(["aaathe end", 0]);
});
