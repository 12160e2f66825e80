import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { Grant } from "../../../server/rpc/grant.ts";
import { Turns } from "../../../server/rpc/turns.ts";

const token = (name: string): Grant => new Grant({ name, capabilities: ["observe"] });

/** Takes the thread for more than a slice. */
function work(): void {
  for (const until = performance.now() + 2; performance.now() < until; );
}

/** A job that ran at once has no promise. */
async function settled(jobs: readonly unknown[]): Promise<void> {
  await Promise.all(jobs.map((job) => Promise.resolve(job)));
}

test("a token that has used its slice waits for turns of the event loop; another's work runs at once", async () => {
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

test("of tokens that wait, the one that has used least goes first, however much the others have brought", async () => {
  const turns = new Turns();
  const [many, few] = [turns.of(token("many")), turns.of(token("few"))];
  const ran: string[] = [];
  const pass = (lane: typeof many, name: string) =>
    lane.pass(() => {
      work();
      ran.push(name);
    });
  const waiting = Array.from({ length: 20 }, () => pass(many, "many"));
  waiting.push(...Array.from({ length: 3 }, () => pass(few, "few")));
  await settled(waiting);
  expect(ran.lastIndexOf("few")).toBeLessThan(10);
});

test("what a job passes comes directly after it, and before what has come since", async () => {
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

test("a job that throws rejects, and those after it run", async () => {
  const lane = new Turns().of(undefined);
  void lane.pass(work);
  const failed = lane.pass(() => {
    throw new Error("no");
  });
  await expect(failed).rejects.toThrow("no");
  expect(await lane.pass(() => 1)).toBe(1);
});
