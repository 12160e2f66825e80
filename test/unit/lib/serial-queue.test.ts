import { describe, expect, test } from "vitest";
import { SerialQueue } from "../../../server/lib/serial-queue.ts";

const queueOf = (maxWaiting = 10) => new SerialQueue({ maxWaiting, onFull: () => new Error("full") });

describe("SerialQueue", () => {
  test("refuses jobs above its limit, and never begins an aborted job", async () => {
    const queue = queueOf(2);
    const gate = Promise.withResolvers<void>();
    const gone = new AbortController();
    const trace: string[] = [];
    const jobs = [
      queue.run(() => gate.promise),
      queue.run(async () => void trace.push("unwanted"), gone.signal),
      queue.run(async () => void trace.push("wanted")),
    ];
    await expect(queue.run(async () => {})).rejects.toThrow("full");
    gone.abort(new Error("gone"));
    gate.resolve();
    const outcomes = await Promise.allSettled(jobs);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(trace).toEqual(["wanted"]);
  });

  test("runs jobs one at a time in order, and returns the outcome of each", async () => {
    const queue = queueOf();
    const trace: string[] = [];
    const gate = Promise.withResolvers<void>();
    const first = queue.run(async () => {
      trace.push("first begins");
      await gate.promise;
      trace.push("first ends");
      return 1;
    });
    const second = queue.run(async () => {
      trace.push("second");
      return 2;
    });
    expect(queue.length).toBe(1);
    gate.resolve();
    expect(await Promise.all([first, second])).toEqual([1, 2]);
    expect(trace).toEqual(["first begins", "first ends", "second"]);
  });

  test("continues after a job that fails", async () => {
    const queue = queueOf();
    const failing = queue.run(() => Promise.reject(new Error("no")));
    const next = queue.run(async () => "yes");
    await expect(failing).rejects.toThrow("no");
    expect(await next).toBe("yes");
  });

  test("lets a job overtake those that wait, but not the one that runs", async () => {
    const queue = queueOf();
    const trace: string[] = [];
    const gate = Promise.withResolvers<void>();
    const jobs = [
      queue.run(async () => {
        await gate.promise;
        trace.push("running");
      }),
      queue.run(async () => void trace.push("waiting")),
      queue.overtake(async () => void trace.push("overtaking")),
    ];
    gate.resolve();
    await Promise.all(jobs);
    expect(trace).toEqual(["running", "overtaking", "waiting"]);
  });
});
