import { expect, test } from "vitest";
import { Gate } from "../../../server/lib/gate.ts";

/** A job that ends on request. */
function job(name: string, log: string[]) {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const run = async (): Promise<void> => {
    log.push(name);
    begun.resolve();
    await promise;
  };
  return { run, end: resolve, fail: reject, begun: begun.promise };
}

const forEver = 600_000;

test("lets jobs through in order, also after one that failed", async () => {
  const gate = new Gate(1, forEver);
  const log: string[] = [];
  const [a, b, c] = [job("a", log), job("b", log), job("c", log)];
  const passes = [a, b, c].map(({ run }) => gate.pass(run));
  a.fail(new Error("no"));
  await expect(passes[0]).rejects.toThrow("no");
  await b.begun;
  expect(log).toEqual(["a", "b"]);
  b.end();
  c.end();
  await Promise.all(passes.slice(1));
  expect(log).toEqual(["a", "b", "c"]);
});

test("removes a cancelled job from the queue", async () => {
  const gate = new Gate(1, forEver);
  const log: string[] = [];
  const [a, b, c] = [job("a", log), job("b", log), job("c", log)];
  const abandon = new AbortController();
  const passes = [gate.pass(a.run), gate.pass(b.run, { signal: abandon.signal }), gate.pass(c.run)];
  abandon.abort(new Error("gone"));
  await expect(passes[1]).rejects.toThrow("gone");
  await expect(gate.pass(b.run, { signal: abandon.signal })).rejects.toThrow("gone");
  a.end();
  c.end();
  await Promise.all([passes[0], passes[2]]);
  expect(log).toEqual(["a", "c"]);
});

test("lets spare jobs wait for all others", async () => {
  const gate = new Gate(1, forEver);
  const log: string[] = [];
  const jobs = ["first", "spare 1", "spare 2", "asked for"].map((name) => job(name, log));
  const passes = jobs.map(({ run }, i) => gate.pass(run, { isSpare: i === 1 || i === 2 }));
  for (const { end } of jobs) end();
  await Promise.all(passes);
  expect(log).toEqual(["first", "asked for", "spare 1", "spare 2"]);
});

test("gives the slot of a job that waits for something to the next one, and only once", async () => {
  const gate = new Gate(1, 10);
  const log: string[] = [];
  const [slow, next, last] = [job("slow", log), job("next", log), job("last", log)];
  const slowPass = gate.pass(slow.run);
  const nextPass = gate.pass(next.run);
  await next.begun;
  slow.end();
  await slowPass;
  next.end();
  await nextPass;
  const lastPass = gate.pass(last.run);
  expect(log).toEqual(["slow", "next", "last"]);
  last.end();
  await lastPass;
});
