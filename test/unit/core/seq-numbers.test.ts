import fc from "fast-check";
import { expect, test } from "vitest";
import { SeqNumbers } from "../../../server/core/seq-numbers.ts";

test("no number is used before its reservation is on disk, whenever a daemon is killed", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 150_000 }), { maxLength: 4 }), fc.boolean(), (lives, commits) => {
      let onDisk = 0;
      let given = 0;
      for (const count of lives) {
        let noted = onDisk;
        const numbers = new SeqNumbers({
          reserved: onDisk,
          reserve: (upTo) => {
            noted = upTo;
            // Some commits happen by themselves, others only when forced.
            if (commits) onDisk = noted;
            return new Promise(() => {});
          },
          flush: () => {
            onDisk = noted;
            return true;
          },
        });
        for (let i = 0; i < count; i += 1) {
          const seq = numbers.next();
          if (seq !== given + 1 && i > 0) throw new Error(`${seq} came after ${given}`);
          if (seq <= given || onDisk < seq) throw new Error(`${seq} was given, and ${onDisk} is on disk`);
          given = seq;
        }
      }
    }),
    { numRuns: 20 },
  );
});

/** A store that can fail, and its content on disk. */
function store(reserved = 0) {
  const state = { onDisk: reserved, noted: reserved, fails: false, loses: false };
  const numbers = (now: () => number): SeqNumbers =>
    new SeqNumbers(
      {
        reserved: state.onDisk,
        reserve: (upTo) => {
          if (!state.loses) state.noted = upTo;
          return state.fails || state.loses ? Promise.reject(new Error("the store fails")) : Promise.resolve();
        },
        flush: (upTo) => {
          if (state.fails) return false;
          state.onDisk = state.noted;
          return state.onDisk >= upTo;
        },
      },
      now,
    );
  return { state, numbers };
}

test("while reservations fail, the numbers used are never reused by a later daemon", () => {
  const { state, numbers } = store();
  const first = numbers(() => 1_000_000);
  const given = [first.next()];
  state.fails = true;
  for (let i = 0; i < 200_000; i += 1) given.push(first.next());
  expect(given.findIndex((seq) => seq > state.onDisk)).toBe(state.onDisk);
  expect(given[state.onDisk]).toBe(1_000_000_000);
  expect(given.every((seq, i) => i === 0 || seq > (given[i - 1] ?? 0))).toBe(true);

  // It is killed. The next one begins far below, and treats a cursor from there as one of another log.
  state.fails = false;
  const second = numbers(() => 1_000_100);
  expect(second.last).toBe(state.onDisk);
  expect(second.next()).toBeLessThan(1_000_000_000);

  // If it cannot reserve either, it starts above all of them, however fast they were used.
  state.fails = true;
  const third = numbers(() => 1_000_200);
  expect(third.next()).toBeGreaterThan(first.last);
});

test("numbers are reserved again when the store works", () => {
  const { state, numbers } = store();
  state.fails = true;
  const log = numbers(() => 1_000_000);
  for (let i = 0; i < 2_000; i += 1) log.next();
  expect(log.last).toBe(1_000_001_999);
  state.fails = false;
  for (let i = 0; i < 2_000; i += 1) log.next();
  expect(log.last).toBe(1_000_003_999);
  expect(state.onDisk).toBeGreaterThan(log.last);
});

test("a reservation that was not written to disk is not used, though the store continues", async () => {
  const { state, numbers } = store();
  const log = numbers(() => 1_000_000);
  expect(log.next()).toBe(1);
  state.loses = true;
  for (let i = 0; i < 100_000; i += 1) {
    const seq = log.next();
    if (seq < 1_000_000_000 && seq > state.onDisk) throw new Error(`${seq} was given, and ${state.onDisk} is on disk`);
  }
  expect(log.last).toBeGreaterThan(1_000_000_000);
  state.loses = false;
  for (let i = 0; i < 2_000; i += 1) log.next();
  expect(state.onDisk).toBeGreaterThan(log.last);
});

test("returned numbers are used by the next daemon, without a hole", async () => {
  const { state, numbers } = store();
  const log = numbers(Date.now);
  for (let i = 0; i < 10; i += 1) log.next();
  await log.release();
  state.onDisk = state.noted;
  expect(state.onDisk).toBe(10);
  expect(log.next()).toBe(11);
  expect(state.onDisk).toBeGreaterThan(11);
});
