import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Delivery } from "../../../protocol/delivery.ts";
import { Expiry } from "../../../server/delivery/expiry.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["Date", "performance", "setTimeout", "clearTimeout"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const hour = 60 * 60 * 1_000;

function push(expiresAfterMs: number): Delivery {
  return {
    deliveryId: "d",
    state: "accepted",
    expiresAt: Date.now() + expiresAfterMs,
    attempts: [],
  } as unknown as Delivery;
}

test("a push's time is measured by a clock that cannot be set", () => {
  const due = vi.fn();
  const expiry = new Expiry(due);
  expiry.watch(push(60_000));
  vi.advanceTimersByTime(30_000);
  vi.setSystemTime(Date.now() + hour);
  vi.advanceTimersByTime(29_000);
  expect(due).not.toHaveBeenCalled();
  vi.setSystemTime(Date.now() - 2 * hour);
  vi.advanceTimersByTime(1_500);
  expect(due).toHaveBeenCalledTimes(1);
  expiry.close();
});

test("an expiry beyond the longest possible timer uses several timers", async () => {
  const due = vi.fn();
  const expiry = new Expiry(due);
  const days = 40 * 24 * hour;
  expiry.watch(push(days));
  await vi.advanceTimersByTimeAsync(days - 1_000);
  expect(due).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(due).toHaveBeenCalled();
  expiry.close();
});

test("a push that could not be withdrawn is tried again until it is decided", async () => {
  const due = vi.fn();
  const expiry = new Expiry(due);
  expiry.watch(push(10));
  await vi.advanceTimersByTimeAsync(3_100);
  expect(due.mock.calls.length).toBeGreaterThanOrEqual(3);
  expiry.forget("d");
  due.mockClear();
  await vi.advanceTimersByTimeAsync(5_000);
  expect(due).not.toHaveBeenCalled();
});
