import { expect, test } from "vitest";
import { ByteBudget } from "../../../../server/context/byte-budget.ts";

const { signal } = new AbortController();
const limits = { maxHeldBytes: 100, maxWaiting: 2, waitMs: 60_000, maxFreeBytes: 5 };

/** Records the order in which the budget is granted. */
function room(more: Partial<typeof limits> = {}) {
  const bytes = new ByteBudget({ ...limits, ...more });
  const admitted: string[] = [];
  const take = (name: string, count: number, until = signal) => {
    const hold = bytes.open();
    const taken = hold.take(count, until).then(() => void admitted.push(name));
    taken.catch(() => {});
    return { hold, taken };
  };
  return { bytes, admitted, take };
}

test("only this many bytes are held at a time, granted in order, and a larger request is granted alone", async () => {
  const { bytes, admitted, take } = room();
  const large = take("large", 1_000);
  const first = take("first", 60);
  const second = take("second", 50);
  await large.taken;
  expect(bytes.held).toBe(1_000);
  large.hold.release();
  large.hold.release();
  await first.taken;
  const third = take("third", 40);
  // It would fit, but another has waited longer.
  expect([bytes.held, admitted]).toEqual([60, ["large", "first"]]);
  first.hold.shrink(50);
  await second.taken;
  second.hold.release();
  await third.taken;
  expect(bytes.held).toBe(90);
  first.hold.release();
  third.hold.release();
  expect([bytes.held, admitted]).toEqual([0, ["large", "first", "second", "third"]]);
});

test("further requests are overloaded, and those that wait too long; small ones never wait", async () => {
  const { bytes, take } = room({ waitMs: 10 });
  const first = take("first", 100);
  await first.taken;
  const waiting = [take("second", 50), take("third", 50)];
  await expect(take("fourth", 50).taken).rejects.toMatchObject({ kind: "overloaded", data: { retryable: true } });
  const small = take("small", 5);
  await small.taken;
  for (const { taken, hold } of waiting) {
    await expect(taken).rejects.toMatchObject({ kind: "overloaded" });
    hold.release();
  }
  expect(bytes.held).toBe(105);
  small.hold.release();
  first.hold.release();
  expect(bytes.held).toBe(0);
});

test("a cancelled request makes way for later ones", async () => {
  const { bytes, take } = room();
  const first = take("first", 60);
  const gone = new AbortController();
  const large = take("large", 100, gone.signal);
  const small = take("second", 40);
  gone.abort(new Error("Nobody waits."));
  await expect(large.taken).rejects.toThrow("Nobody waits.");
  await small.taken;
  expect(bytes.held).toBe(100);
  await expect(take("late", 1, gone.signal).taken).rejects.toThrow("Nobody waits.");
  large.hold.release();
  first.hold.release();
  small.hold.release();
  expect(bytes.held).toBe(0);
});
