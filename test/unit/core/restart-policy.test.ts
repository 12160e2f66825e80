import { expect, test, vi } from "vitest";
import { maxRestarts, nextTry, StartHealth } from "../../../server/core/restart-policy.ts";
import { Retry } from "../../../server/delivery/retry.ts";

test("the first two failures are retried immediately, later ones less often, and without a push not forever", () => {
  const delays = [1, 2, 3, 4, 5, 6].map((failures) => nextTry(failures, false));
  expect(delays.slice(0, 2)).toEqual([
    { kind: "again", delayMs: 0 },
    { kind: "again", delayMs: 0 },
  ]);
  expect(delays.slice(2, 5).map((next) => (next.kind === "again" ? next.delayMs : 0))).toEqual([1_000, 5_000, 15_000]);
  expect(delays[maxRestarts]).toEqual({ kind: "stays" });
  expect(nextTry(100, true)).toEqual({ kind: "again", delayMs: 300_000 });
});

test("when all starts fail, a hundred sessions make one attempt at a time, less and less often", () => {
  const health = new StartHealth();
  for (let i = 0; i < 5; i += 1) {
    expect(health.admit(0)).toBe(0);
    health.failed();
  }
  let tries = 0;
  const hour = 3_600_000;
  for (let now = 10_000; now < hour; now += 100) {
    for (let session = 0; session < 100; session += 1) {
      if (health.admit(now) > 0) continue;
      tries += 1;
      health.failed();
    }
  }
  expect(tries).toBeGreaterThan(10);
  expect(tries).toBeLessThan(25);
  health.succeeded();
  expect([health.admit(hour), health.admit(hour)]).toEqual([0, 0]);
});

test("failures far apart are independent", () => {
  using _time = useFakeTime();
  const retry = new Retry({ again: () => {}, pushWaits: () => false });
  for (let i = 0; i < 3 * maxRestarts; i += 1) {
    retry.failed(i * 200_000);
    expect(retry.isDue).toBe(true);
    vi.advanceTimersByTime(60_000);
  }
  expect(retry.facts(3 * maxRestarts * 200_000)?.failures).toBeLessThanOrEqual(3);
  retry.close();
});

test("an attempt that may not be made yet is made later, and is not a failure", () => {
  using _time = useFakeTime();
  let [tries, wait] = [0, 5_000];
  const retry = new Retry({
    again: () => {
      tries += 1;
    },
    pushWaits: () => false,
    admit: () => wait,
  });
  retry.failed(0);
  vi.advanceTimersByTime(4_000);
  expect([tries, retry.facts(4_000)]).toEqual([0, { failures: 1, nextAt: expect.any(Number) }]);
  wait = 0;
  vi.advanceTimersByTime(10_000);
  expect([tries, retry.facts(14_000)]).toEqual([1, { failures: 1 }]);
  expect(retry.facts(3_600_000)).toBeUndefined();
  retry.failed(15_000);
  retry.close();
  vi.advanceTimersByTime(100_000);
  expect(tries).toBe(1);
});

function useFakeTime(): Disposable {
  vi.useFakeTimers();
  return { [Symbol.dispose]: () => void vi.useRealTimers() };
}
