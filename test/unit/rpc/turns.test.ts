import { setImmediate } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { Grant } from "../../../server/rpc/grant.ts";
import { Turns } from "../../../server/rpc/turns.ts";

const token = (name: string): Grant => new Grant({ name, capabilities: ["observe"] });

/** Occupies the thread for more than a slice. */
function work(): void {
  for (const until = performance.now() + 2; performance.now() < until; );
}

function heapBytes(): number {
  setFlagsFromString("--expose-gc");
  (runInNewContext("gc") as () => void)();
  return process.memoryUsage().heapUsed;
}

/** A job that ran immediately has no promise. */
async function settled(jobs: readonly unknown[]): Promise<void> {
  await Promise.all(jobs.map((job) => Promise.resolve(job)));
}

test("a token that has used its slice waits for turns of the event loop; another's work runs immediately", async () => {
  const turns = new Turns();
  const [busy, quiet] = [turns.of(token("busy")), turns.of(token("quiet"))];
  const ran: string[] = [];
  const all = [1, 2, 3].map((n) =>
    busy.pass(() => {
      work();
      ran.push(`busy ${n}`);
    }),
  );
  expect(ran).toEqual(["busy 1"]);
  void quiet.pass(() => ran.push("quiet"));
  expect(ran).toEqual(["busy 1", "quiet"]);
  await setImmediate();
  expect(ran).toEqual(["busy 1", "quiet", "busy 2"]);
  await settled(all);
  expect(ran.at(-1)).toBe("busy 3");
});

test("of waiting tokens, the one that has used least goes first, however much the others have queued", async () => {
  const { turns, ran, use } = clocked();
  const [many, few] = [turns.of(token("many")), turns.of(token("few"))];
  const pass = (lane: typeof many, name: string) => lane.pass(use(name, 2));
  const waiting = Array.from({ length: 20 }, () => pass(many, "many"));
  waiting.push(...Array.from({ length: 3 }, () => pass(few, "few")));
  await settled(waiting);
  expect(ran.lastIndexOf("few")).toBeLessThan(10);
});

test("follow-up work of a job comes directly after it, and before newer work", async () => {
  const turns = new Turns();
  const lane = turns.of(token("one"));
  const ran: string[] = [];
  const parts: unknown[] = [];
  const batch = (name: string) =>
    lane.pass(() => {
      for (const n of [1, 2, 3]) {
        parts.push(
          lane.pass(() => {
            work();
            ran.push(`${name}${n}`);
          }),
        );
      }
    });
  const all = [batch("a"), batch("b"), lane.pass(() => ran.push("c"))];
  await settled(all);
  await Promise.all(parts);
  expect(ran).toEqual(["a1", "a2", "a3", "b1", "b2", "b3", "c"]);
});

test("a job that throws rejects, and later ones run", async () => {
  const lane = new Turns().of(undefined);
  void lane.pass(work);
  const failed = lane.pass(() => {
    throw new Error("no");
  });
  await expect(failed).rejects.toThrow("no");
  expect(await lane.pass(() => 1)).toBe(1);
});

/** Turns with a clock that only work advances: the jobs that `use` creates take this many milliseconds. */
function clocked() {
  let now = 0;
  const turns = new Turns(() => now);
  const ran: string[] = [];
  const use = (name: string, ms: number) => (): void => {
    now += ms;
    ran.push(name);
  };
  return { turns, ran, use };
}

test("tokens get the same time, whatever their jobs take and however many there are", async () => {
  const { turns, ran, use } = clocked();
  const jobs: unknown[] = [];
  for (const [name, ms, count] of [
    ["short", 1, 400],
    ["long", 4, 100],
    ["few", 1, 40],
  ] as const) {
    const lane = turns.of(token(name));
    for (let n = 0; n < count; n += 1) jobs.push(lane.pass(use(name, ms)));
  }
  await settled(jobs);
  const count = (name: string, upTo: number): number => ran.slice(0, upTo).filter((one) => one === name).length;
  const fewDone = ran.lastIndexOf("few") + 1;
  expect(count("short", fewDone)).toBeLessThanOrEqual(48);
  expect(count("long", fewDone)).toBeLessThanOrEqual(12);
  // The remaining tokens share the rest.
  const half = ran.length / 2;
  expect(Math.abs(count("short", half) - 4 * count("long", half))).toBeLessThanOrEqual(8);
});

test("a token that was idle has not saved up time: it takes turns with the others from then on", async () => {
  const { turns, ran, use } = clocked();
  const [busy, late] = [turns.of(token("busy")), turns.of(token("late"))];
  const jobs: unknown[] = Array.from({ length: 100 }, () => busy.pass(use("busy", 1)));
  while (ran.length < 50) await setImmediate();
  const since = ran.length;
  jobs.push(...Array.from({ length: 40 }, () => late.pass(use("late", 1))));
  await settled(jobs);
  const both = ran.slice(since, since + 40);
  expect(both.filter((one) => one === "late").length).toBeLessThanOrEqual(24);
  expect(both.filter((one) => one === "busy").length).toBeGreaterThanOrEqual(16);
});

test("time counted outside a turn delays the token's next job, and is counted once", async () => {
  const { turns, ran, use } = clocked();
  const lane = turns.of(token("one"));
  expect(lane.isBusy).toBe(false);
  lane.count(() => void lane.pass(use("within", 1)));
  expect(lane.usedMs).toBe(1);
  expect(lane.isBusy).toBe(true);
  const job = lane.pass(use("next", 1));
  expect(ran).toEqual(["within"]);
  await job;
  lane.count(() => lane.count(use("nested", 1)));
  expect(lane.usedMs).toBe(3);
});

test("work that ends a started operation goes before other work, also before follow-up work of jobs", async () => {
  const { turns, ran, use } = clocked();
  const lane = turns.of(token("one"));
  const jobs: unknown[] = [lane.pass(use("uses its slice", 1))];
  jobs.push(
    lane.pass(() => {
      for (const name of ["part 1", "part 2"]) jobs.push(lane.pass(use(name, 1)));
      use("whole", 1)();
    }),
  );
  jobs.push(lane.pass(use("last", 1)));
  while (!ran.includes("whole")) await setImmediate();
  jobs.push(lane.pass(use("end", 1), { isFirst: true }));
  await settled(jobs);
  await settled(jobs);
  expect(ran).toEqual(["uses its slice", "whole", "end", "part 1", "part 2", "last"]);
});

test("a lane that is never empty keeps nothing of completed jobs, not even their slots", async () => {
  let now = 0;
  const lane = new Turns(() => now).of(token("busy"));
  let left = 400_000;
  const next = (): void => {
    now += 0.01;
    left -= 1;
    if (left > 0) queueMicrotask(() => void lane.pass(next));
  };
  // A slice has 25 of them: others always wait.
  for (let n = 0; n < 60; n += 1) void lane.pass(next);
  while (left > 390_000) await setImmediate();
  const before = heapBytes();
  while (left > 0) await setImmediate();
  expect(heapBytes() - before).toBeLessThan(1_500_000);
});
