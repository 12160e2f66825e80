import { describe, expect, it } from "vitest";
import { AsyncBuffer } from "../../../client/async-buffer.ts";

const limits = { maxItems: 3, maxSize: 100 };

async function drain<T>(buffer: AsyncBuffer<T>): Promise<readonly T[]> {
  const values: T[] = [];
  for (let next = await buffer.next(); next.done !== true; next = await buffer.next()) values.push(next.value);
  return values;
}

describe("AsyncBuffer", () => {
  it("returns items in order, whether the reader or the item comes first", async () => {
    const buffer = new AsyncBuffer<number>(limits);
    const early = [buffer.next(), buffer.next()];
    for (const n of [1, 2, 3, 4]) expect(buffer.push(n)).toBe(true);
    buffer.end();
    expect((await Promise.all(early)).map(({ value }) => value)).toEqual([1, 2]);
    expect(await drain(buffer)).toEqual([3, 4]);
  });

  it("refuses an item above the number of items, and accepts one again after a read", async () => {
    const buffer = new AsyncBuffer<number>(limits);
    expect([1, 2, 3, 4].map((n) => buffer.push(n))).toEqual([true, true, true, false]);
    await buffer.next();
    expect(buffer.push(5)).toBe(true);
  });

  it("refuses an item above the sum of sizes, but never a single one", async () => {
    const buffer = new AsyncBuffer<string>(limits);
    expect(buffer.push("huge", 1_000)).toBe(true);
    expect(buffer.push("small", 1)).toBe(false);
    await buffer.next();
    expect(buffer.push("half", 50)).toBe(true);
    expect(buffer.push("half", 51)).toBe(false);
  });

  it("throws its error once, after the items, and ends", async () => {
    const buffer = new AsyncBuffer<number>(limits);
    buffer.push(1);
    buffer.end(new Error("broken"));
    buffer.end(new Error("a later reason"));
    expect(await buffer.next()).toEqual({ done: false, value: 1 });
    await expect(buffer.next()).rejects.toThrow("broken");
    expect(await buffer.next()).toEqual({ done: true, value: undefined });
  });

  it("ends waiting readers: the first with the error, the others with done", async () => {
    const buffer = new AsyncBuffer<number>(limits);
    const [first, second] = [buffer.next(), buffer.next()];
    buffer.end(new Error("broken"));
    await expect(first).rejects.toThrow("broken");
    expect(await second).toEqual({ done: true, value: undefined });
    expect(buffer.push(1)).toBe(false);
  });

  it("drops its items when it is discarded, also after its end", async () => {
    const buffer = new AsyncBuffer<number>(limits);
    buffer.push(1);
    buffer.end(new Error("never seen"));
    buffer.discard();
    expect(await drain(buffer)).toEqual([]);
  });

  it("keeps order over many reads and writes", async () => {
    const buffer = new AsyncBuffer<number>({ maxItems: 5_000, maxSize: 0 });
    const read: number[] = [];
    let written = 0;
    for (let round = 0; round < 40; round += 1) {
      for (let n = 0; n < 100; n += 1) {
        written += 1;
        expect(buffer.push(written)).toBe(true);
      }
      for (let n = 0; n < 70; n += 1) read.push((await buffer.next()).value as number);
    }
    buffer.end();
    read.push(...(await drain(buffer)));
    expect(read).toEqual(Array.from({ length: written }, (_, index) => index + 1));
  });
});
