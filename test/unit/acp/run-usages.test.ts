import { expect, test } from "vitest";
import { RunUsages } from "../../../acp/updates/usage.ts";

const answer = (input: number) => ({ input, output: 1, cost: { total: input / 100 } });

/** pi's events of a run with answers of these sizes; `settles`: with its end. */
function run(usages: RunUsages, inputs: readonly number[], settles = true): void {
  usages.event("agent_start");
  for (const input of inputs) usages.answered(answer(input));
  if (!settles) return;
  usages.event("agent_end");
  usages.event("agent_settled");
}

const inputOf = (usages: RunUsages, runId: string): number => usages.of(runId).usage.input;

test("each run has the usage of its own answers, also when its end is reported after the first events of the next", () => {
  const usages = new RunUsages();
  run(usages, [1, 2]);
  expect(inputOf(usages, "one")).toBe(3);
  run(usages, [10], false);
  expect(inputOf(usages, "one")).toBe(3);
  usages.ended("one");
  usages.answered(answer(20));
  expect([inputOf(usages, "one"), inputOf(usages, "two")]).toEqual([3, 30]);
  usages.event("agent_end");
  usages.event("agent_settled");
  usages.ended("two");
  run(usages, [100]);
  expect(["one", "two", "three"].map((id) => inputOf(usages, id))).toEqual([3, 30, 100]);
  expect(usages.of("three")).toEqual({ usage: { input: 100, output: 1, cacheRead: 0, cacheWrite: 0 }, cost: 1 });
});

test("a run that goes on after an answer that failed, or after a settled rival, is one run", () => {
  const usages = new RunUsages();
  run(usages, [1], false);
  usages.event("agent_end");
  usages.event("agent_start");
  usages.event("agent_settled");
  usages.answered(answer(2));
  usages.event("agent_end");
  usages.event("agent_settled");
  usages.ended("one");
  expect(inputOf(usages, "one")).toBe(3);
});

test("the run of a pi that has ended is over", () => {
  const usages = new RunUsages();
  usages.childChanged();
  run(usages, [1], false);
  usages.childChanged();
  run(usages, [10], false);
  usages.ended("one");
  expect([inputOf(usages, "one"), inputOf(usages, "two")]).toEqual([1, 10]);
  usages.event("agent_end");
  usages.event("agent_settled");
  usages.ended("two");
  // It sleeps between its runs.
  usages.childChanged();
  run(usages, [100]);
  expect([inputOf(usages, "two"), inputOf(usages, "three")]).toEqual([10, 100]);
});
