import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Arrival } from "../../../context/parts/structured/arrival.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface Place {
  readonly arrival: Arrival;
  readonly memory: { contextDueBy: number | undefined };
  readonly faults: string[];
}

function place(dueInMs?: number): Place {
  const memory = { contextDueBy: dueInMs === undefined ? undefined : performance.now() + dueInMs };
  const faults: string[] = [];
  const arrival = new Arrival({ memory, fault: (_where, thrown) => faults.push((thrown as Error).message) });
  return { arrival, memory, faults };
}

test("without a promised context requests do not wait", () => {
  const { arrival } = place();
  expect(arrival.wait(undefined)).toBeUndefined();
});

test("all waiting requests continue when the context arrives, and later ones do not wait", async () => {
  const { arrival, faults } = place(1_000);
  const waiting = [arrival.wait(undefined), arrival.wait(new AbortController().signal)];
  arrival.settle();
  for (const one of waiting) await one;
  expect(arrival.wait(undefined)).toBeUndefined();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(faults).toEqual([]);
});

test("a context that does not arrive in time is reported once, and requests are made without it", async () => {
  const { arrival, memory, faults } = place(1_000);
  const waiting = [arrival.wait(undefined), arrival.wait(undefined)];
  await vi.advanceTimersByTimeAsync(1_000);
  for (const one of waiting) await one;
  expect(faults).toEqual(["The announced context did not arrive; requests are made without it."]);
  expect(memory.contextDueBy).toBeUndefined();
  expect(arrival.wait(undefined)).toBeUndefined();
});

test("an abort ends only the wait of its own run", async () => {
  const { arrival, faults } = place(1_000);
  const abort = new AbortController();
  const aborted = arrival.wait(abort.signal);
  const other = arrival.wait(undefined);
  abort.abort();
  await aborted;
  expect(arrival.wait(abort.signal)).toBeUndefined();
  arrival.release();
  await other;
  expect(arrival.wait(undefined)).toBeInstanceOf(Promise);
  expect(faults).toEqual([]);
  arrival.settle();
});
