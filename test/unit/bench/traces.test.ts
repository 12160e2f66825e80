import { describe, expect, test } from "vitest";
import { quantile } from "../../../bench/lib/statistics.ts";
import { compositionOf } from "../../../bench/lib/traces/composition.ts";
import { makeTrace } from "../../../bench/lib/traces/make.ts";
import { callsOf, longTraceNames, traceNames } from "../../../bench/lib/traces/trace.ts";
import { loadVocabulary } from "../../../provider/cache/vocabulary.ts";

const { encode } = await loadVocabulary("cl100k_base");
const count = (text: string): number => encode(text).length;
const traces = [...traceNames, ...longTraceNames].map((name) => makeTrace(name));

describe.each(traces)("the trace $name", (trace) => {
  const made = compositionOf(trace, count);

  test("consists of 84 % tool results, 52 % of them reads and 25 % shell output", () => {
    expect(Math.abs(made.resultShare - 0.84)).toBeLessThan(0.015);
    expect(Math.abs(made.kinds.read - 0.52)).toBeLessThan(0.03);
    expect(Math.abs(made.kinds.shell - 0.25)).toBeLessThan(0.03);
  });

  test("has results whose sizes are log-normal, half of them below 3 KiB", () => {
    const logs = made.sizes.map(Math.log);
    const mean = logs.reduce((sum, log) => sum + log, 0) / logs.length;
    const deviation = Math.sqrt(logs.reduce((sum, log) => sum + (log - mean) ** 2, 0) / logs.length);
    expect(quantile(made.sizes, 0.5) / 3_072).toBeGreaterThan(0.85);
    expect(quantile(made.sizes, 0.5) / 3_072).toBeLessThan(1.15);
    // The logarithms of a log-normal distribution with these two quantiles deviate by 1.575; pi's tools cut the end
    // off.
    expect(Math.abs(deviation - 1.5)).toBeLessThan(0.15);
    expect(Math.max(...made.sizes)).toBeLessThanOrEqual(51_200);
  });

  test("reads 12 % again, a third of that after a change, and fails in 6 %", () => {
    const whole = 0.6 / made.calls;
    expect(Math.abs(made.repeatedShare - 0.12)).toBeLessThan(whole);
    expect(Math.abs(made.changedShare - 1 / 3)).toBeLessThan(0.6 / (made.repeatedShare * made.calls));
    expect(Math.abs(made.failedShare - 0.06)).toBeLessThan(whole);
  });

  test("repeats its results at the stated later places, and changes a file between two different reads", () => {
    const calls = callsOf(trace);
    for (const [at, call] of calls.entries()) {
      if (call.repeats === undefined) continue;
      const before = calls.slice(0, at).filter(({ args }) => args["path"] === call.args["path"]);
      expect(before[0]?.tool).toBe("read");
      expect(before.map(({ tool }) => tool).includes("edit")).toBe(call.repeats === "changed");
      expect(before[0]?.result === call.result).toBe(call.repeats === "same");
    }
  });

  test("is deterministic", () => {
    expect(makeTrace(trace.name)).toEqual(trace);
  });
});

describe("the traces", () => {
  test("have 95 % of all results below 40 KiB", () => {
    const sizes = traces.flatMap((trace) => compositionOf(trace, () => 1).sizes);
    expect(quantile(sizes, 0.95) / 40_960).toBeGreaterThan(0.85);
    expect(quantile(sizes, 0.95) / 40_960).toBeLessThan(1.15);
  });

  test("are ten turns, one prompt with sixty calls, forty prompts, a hundred tools, and twice 300 calls", () => {
    const [short, autonomous, dialogue, tools, longRun, longDialogue] = traces;
    expect(short?.prompts.flatMap(({ turns }) => turns)).toHaveLength(10);
    expect(autonomous?.prompts).toHaveLength(1);
    expect(autonomous?.prompts[0]?.turns.flatMap(({ calls }) => calls)).toHaveLength(60);
    expect(dialogue?.prompts).toHaveLength(40);
    expect(tools?.tools).toHaveLength(100);
    expect(new Set(tools?.tools.map(({ name }) => name)).size).toBe(100);
    for (const [trace, prompts, pauses] of [
      [longRun, 1, 0],
      [longDialogue, 25, 4],
    ] as const) {
      expect(trace && callsOf(trace)).toHaveLength(300);
      expect(trace?.prompts).toHaveLength(prompts);
      expect(trace?.prompts.filter(({ pauseSeconds }) => pauseSeconds === 900)).toHaveLength(pauses);
    }
  });

  test("have variants with the same shape and other texts", () => {
    const [first, second] = [0, 1].map((variant) => makeTrace("long dialogue", variant));
    expect(second?.prompts.map(({ turns }) => turns.length)).toEqual(first?.prompts.map(({ turns }) => turns.length));
    expect(second?.prompts[0]?.text).not.toBe(first?.prompts[0]?.text);
  });
});
