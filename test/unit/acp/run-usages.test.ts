import { expect, test } from "vitest";
import { RunUsages } from "../../../acp/updates/usage.ts";

const answer = (input: number) => ({ input, output: 1, cost: { total: input / 100 } });

let now = 0;

function event(usages: RunUsages, type: string, generation = 1): void {
  now += 1;
  usages.event({ event: { type }, generation, at: now });
}

/** pi's events of a run with answers of these sizes. */
function run(usages: RunUsages, inputs: readonly number[], { settles = true, generation = 1 } = {}): void {
  event(usages, "agent_start", generation);
  for (const input of inputs) usages.answered(answer(input));
  if (settles) settle(usages, generation);
}

function settle(usages: RunUsages, generation = 1): void {
  for (const type of ["agent_end", "agent_settled"]) event(usages, type, generation);
}

const inputOf = (usages: RunUsages, runId: string): number => usages.of(runId).usage.input;

test("each run has the usage of its own answers, also when its end is reported after the first events of the next", () => {
  const usages = new RunUsages();
  run(usages, [1, 2]);
  expect(inputOf(usages, "one")).toBe(3);
  run(usages, [10], { settles: false });
  expect(inputOf(usages, "one")).toBe(3);
  usages.ended({ runId: "one", startedAt: 0 });
  usages.answered(answer(20));
  expect([inputOf(usages, "one"), inputOf(usages, "two")]).toEqual([3, 30]);
  settle(usages);
  usages.ended({ runId: "two", startedAt: 0 });
  run(usages, [100]);
  expect(["one", "two", "three"].map((id) => inputOf(usages, id))).toEqual([3, 30, 100]);
  expect(usages.of("three")).toEqual({ usage: { input: 100, output: 1, cacheRead: 0, cacheWrite: 0 }, cost: 1 });
});

test("a run that goes on after an answer that failed, or after a settled rival, is one run", () => {
  const usages = new RunUsages();
  run(usages, [1], { settles: false });
  for (const type of ["agent_end", "agent_start", "agent_settled"]) event(usages, type);
  usages.answered(answer(2));
  settle(usages);
  usages.ended({ runId: "one", startedAt: 0 });
  expect(inputOf(usages, "one")).toBe(3);
});

test("the run of a pi that has ended is over", () => {
  const usages = new RunUsages();
  run(usages, [1], { settles: false });
  run(usages, [10], { settles: false, generation: 2 });
  usages.ended({ runId: "one", startedAt: 0 });
  expect([inputOf(usages, "one"), inputOf(usages, "two")]).toEqual([1, 10]);
  settle(usages, 2);
  usages.ended({ runId: "two", startedAt: 0 });
  // It sleeps between its runs.
  run(usages, [100], { generation: 3 });
  expect([inputOf(usages, "two"), inputOf(usages, "three")]).toEqual([10, 100]);
});

test("a run has its usage also when the end of the run before it was lost", () => {
  const usages = new RunUsages();
  run(usages, [1]);
  const startedAt = now + 1;
  run(usages, [10]);
  run(usages, [100], { settles: false });
  usages.ended({ runId: "two", startedAt });
  expect([inputOf(usages, "two"), inputOf(usages, "three")]).toEqual([10, 100]);
});
