import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { RetryTimer } from "../../../extension/delivery/retry-timer.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("repeated requests make it fire less and less often, but at least twice a second", () => {
  const calls: number[] = [];
  const started = Date.now();
  const timer = new RetryTimer(() => {
    calls.push(Date.now() - started);
    timer.ask();
  }, expect.unreachable);
  timer.ask();
  timer.ask();
  vi.advanceTimersByTime(3_000);
  expect(calls).toEqual([10, 30, 70, 150, 310, 630, 1_130, 1_630, 2_130, 2_630]);
  timer.stop();
});

test("it starts again from the shortest pause once it was not requested", () => {
  let calls = 0;
  const timer = new RetryTimer(() => {
    calls += 1;
  }, expect.unreachable);
  for (let n = 1; n <= 3; n += 1) {
    timer.ask();
    vi.advanceTimersByTime(10);
    expect(calls).toBe(n);
  }
});

test("it can be fired early, and stopped", () => {
  let calls = 0;
  const timer = new RetryTimer(() => {
    calls += 1;
  }, expect.unreachable);
  timer.ask();
  timer.hasten();
  vi.advanceTimersByTime(1);
  expect(calls).toBe(1);
  timer.ask();
  timer.stop();
  vi.advanceTimersByTime(1_000);
  expect(calls).toBe(1);
});

test("an error in the callback is reported and ends nothing", () => {
  const faults: unknown[] = [];
  const timer = new RetryTimer(
    () => {
      throw new Error("broken");
    },
    (where, thrown) => faults.push([where, thrown]),
  );
  timer.ask();
  vi.advanceTimersByTime(10);
  expect(faults).toEqual([["retry", new Error("broken")]]);
});
