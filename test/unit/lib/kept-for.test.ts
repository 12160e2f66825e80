import { expect, it } from "vitest";
import { keptFor } from "../../../server/lib/kept-for.ts";

it("a cached value is made again when it is old", () => {
  let count = 0;
  const kept = keptFor(Number.POSITIVE_INFINITY, () => ++count);
  expect([kept(), kept()]).toEqual([1, 1]);
  const made = keptFor(0, () => ++count);
  expect([made(), made()]).toEqual([2, 3]);
});

it("a value that cannot be made again remains as it was", () => {
  const values: number[] = [];
  const first = keptFor(0, () => {
    const value = values.shift();
    if (value === undefined) throw new Error("EMFILE: too many open files");
    return value;
  });
  expect(first).toThrow("EMFILE");
  values.push(1);
  expect([first(), first()]).toEqual([1, 1]);
  values.push(2);
  expect(first()).toBe(2);
});
