import { expect, test } from "vitest";
import { type Clock, openLoop } from "../../../bench/lib/open-loop.ts";

/** Resolves when all that can run without the clock has run. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** A clock that only moves when somebody waits for it, and then ends the waits of the times that it passes. */
class ManualClock implements Clock {
  #now = 0;
  #waits: { readonly at: number; readonly end: () => void }[] = [];

  now(): number {
    return this.#now;
  }

  async until(at: number): Promise<void> {
    await settled();
    for (const wait of this.#waits.filter((one) => one.at <= at).sort((a, b) => a.at - b.at)) {
      this.#now = Math.max(this.#now, wait.at);
      wait.end();
      await settled();
    }
    this.#waits = this.#waits.filter((one) => one.at > at);
    this.#now = Math.max(this.#now, at);
  }

  /** The process is busy. */
  pass(ms: number): void {
    this.#now += ms;
  }

  at(time: number): Promise<void> {
    return new Promise((end) => this.#waits.push({ at: time, end }));
  }
}

test("a pause of the server counts for every request that was due in it", async () => {
  const clock = new ManualClock();
  const pause = { from: 50, to: 100 };
  const request = (): Promise<void> => {
    const now = clock.now();
    return now >= pause.from && now < pause.to ? clock.at(pause.to) : Promise.resolve();
  };
  const { latencies, lateness } = await openLoop(request, { everyMs: 10, count: 15, clock });
  const waited = latencies.filter((latency) => latency > 0).sort((a, b) => a - b);
  expect(waited).toEqual([10, 20, 30, 40, 50]);
  expect(latencies).toHaveLength(15);
  expect(Math.max(...lateness)).toBe(0);
});

test("a late sender counts too, and catches up with the schedule", async () => {
  const clock = new ManualClock();
  const request = async (index: number): Promise<void> => {
    if (index === 2) clock.pass(35);
  };
  const { latencies, lateness } = await openLoop(request, { everyMs: 10, count: 8, clock });
  expect(lateness).toEqual([0, 0, 0, 25, 15, 5, 0, 0]);
  expect(latencies.filter((latency) => latency > 0).sort((a, b) => a - b)).toEqual([5, 15, 25, 35]);
});

test("a request that fails fails the measurement", async () => {
  const request = (index: number): Promise<void> => (index === 1 ? Promise.reject(new Error("no")) : Promise.resolve());
  await expect(openLoop(request, { everyMs: 10, count: 3, clock: new ManualClock() })).rejects.toThrow("no");
});
