import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JsonlSplitter } from "../../../protocol/jsonl.ts";

interface Split {
  readonly records: string[];
  readonly oversize: { readonly head: string; readonly bytes: number }[];
  readonly rest: string | undefined;
}

function split(chunks: readonly Buffer[], maxRecordBytes = 1_000): Split {
  const records: string[] = [];
  const oversize: { head: string; bytes: number }[] = [];
  const splitter = new JsonlSplitter({
    maxRecordBytes,
    onRecord: (record) => records.push(record.toString("utf8")),
    onOversize: (head, bytes) => oversize.push({ head: head.toString("utf8"), bytes }),
  });
  for (const chunk of chunks) splitter.push(chunk);
  return { records, oversize, rest: splitter.rest()?.toString("utf8") };
}

/** Cuts bytes at the given positions. */
function cut(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...[...places].map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return sorted.slice(1).map((end, i) => bytes.subarray(sorted[i], end));
}

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** Memory of buffers that are still referred to. */
function usedBytes(): number {
  collectGarbage();
  return process.memoryUsage().arrayBuffers;
}

describe("JsonlSplitter", () => {
  test("splits only on LF, so U+2028, U+2029, U+0085, VT and FF stay inside a record", () => {
    const line = '{"text":"a\u2028b\u2029c\u0085d\u000be\u000cf"}';
    expect(split([Buffer.from(`${line}\n${line}\n`)]).records).toEqual([line, line]);
  });

  test("removes one CR before LF and no other", () => {
    expect(split([Buffer.from("a\r\nb\rc\nd\r\r\n\r\n\n")]).records).toEqual(["a", "b\rc", "d\r"]);
  });

  test("yields the same records however the bytes are cut, including split UTF-8 and CRLF", () => {
    const line = fc.stringMatching(/^[^\r\n]{1,40}$/u).map((text) => text.normalize("NFC"));
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 20 }),
        fc.constantFrom("\n", "\r\n"),
        fc.array(fc.nat({ max: 5_000 }), { maxLength: 40 }),
        (lines, ending, places) => {
          const bytes = Buffer.from(lines.map((text) => text + ending).join(""));
          const whole = split([bytes]);
          expect(split(cut(bytes, places))).toEqual(whole);
          expect(whole.records).toEqual(
            Buffer.from(lines.join("\n"))
              .toString("utf8")
              .split("\n")
              .filter((text) => text !== ""),
          );
        },
      ),
      { numRuns: 500 },
    );
  });

  test("cuts a stream of multi-byte characters at every single byte without harm", () => {
    const line = '{"text":"ä€😀é\u2028"}';
    const bytes = Buffer.from(`${line}\r\n${line}\n`);
    for (let at = 0; at <= bytes.length; at += 1) expect(split(cut(bytes, [at])).records).toEqual([line, line]);
    expect(split(Array.from(bytes, (byte) => Buffer.from([byte]))).records).toEqual([line, line]);
  });

  test("skips a record over the limit, reports its length, and continues after it", () => {
    const long = `{"type":"huge","data":"${"x".repeat(2_000)}"}`;
    const stream = Buffer.from(`first\n${long}\nlast\n`);
    for (const chunks of [[stream], cut(stream, [3, 600, 1_200, 2_025])]) {
      const result = split(chunks);
      expect(result.records).toEqual(["first", "last"]);
      expect(result.oversize).toHaveLength(1);
      expect(result.oversize[0]?.bytes).toBe(long.length);
      expect(result.oversize[0]?.head.startsWith('{"type":"huge"')).toBe(true);
    }
  });

  test("keeps no more than the limit of a record that never ends", async () => {
    const splitter = new JsonlSplitter({ maxRecordBytes: 1_000, onRecord: () => {}, onOversize: () => {} });
    const before = usedBytes();
    for (let i = 0; i < 200; i += 1) splitter.push(Buffer.alloc(1024 * 1024, 0x78));
    // V8 frees what was collected in threads of its own, which a loaded machine delays.
    await expect.poll(() => usedBytes() - before).toBeLessThan(50 * 1024 * 1024);
    expect(splitter.rest()?.length).toBe(256);
  });

  test("returns the bytes after the last LF", () => {
    expect(split([Buffer.from('{"a":1}\n{"b"')]).rest).toBe('{"b"');
    expect(split([Buffer.from('{"a":1}\n')]).rest).toBeUndefined();
  });
});
