import { describe, expect, it } from "vitest";
import { RateWindow } from "../../../server/lib/rate-window.ts";

describe("a rate's window", () => {
  it("holds a fixed number, and as many again in the next window", () => {
    const window = new RateWindow({ max: 2, windowMs: 1_000 });
    expect([0, 1, 2, 999].map((at) => window.add(at))).toEqual([true, true, false, false]);
    expect([1_000, 1_500, 1_999].map((at) => window.add(at))).toEqual([true, true, false]);
  });

  it("says whether one more would exceed the rate, and does not count it", () => {
    const window = new RateWindow({ max: 1, windowMs: 1_000 });
    expect([0, 1].map((at) => window.isFull(at))).toEqual([false, false]);
    window.add(5_000);
    expect([5_000, 5_999, 6_000, 100].map((at) => window.isFull(at))).toEqual([true, true, false, false]);
  });

  it("reports its remaining time", () => {
    const window = new RateWindow({ max: 1, windowMs: 1_000 });
    window.add(5_000);
    expect([5_000, 5_400, 7_000].map((at) => window.restMs(at))).toEqual([1_000, 600, 0]);
  });

  it("restarts if the clock was set back", () => {
    const window = new RateWindow({ max: 1, windowMs: 1_000 });
    expect([5_000, 5_001, 100, 101].map((at) => window.add(at))).toEqual([true, false, true, false]);
  });
});
