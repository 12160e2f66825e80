import { expect, test } from "vitest";
import { figures } from "../../../bench/figures.ts";
import { type Goal, goals, verdict } from "../../../bench/goals.ts";
import type { Figure, Row } from "../../../bench/lib/figure.ts";
import { type Outcome, type ReportedFigure, report, reportGoals } from "../../../bench/lib/report.ts";
import { marginal, quantile, ratios } from "../../../bench/lib/statistics.ts";

const idle = { loadAverage: 0, delayP50Ms: 0, delayP99Ms: 0 };
const load = { before: idle, after: idle };

function reported(outcome: Outcome): ReportedFigure {
  return report({ name: "latency", title: "", goals: ["Q1"], load, seconds: 1 }, outcome);
}

function measured(...values: readonly number[]): ReportedFigure {
  const row: Row = { name: "a ratio", unit: "x", values, goals: ["Q1"] };
  return reported({ kind: "measured", measured: { rows: [row], notes: [] } });
}

const goalOf = (figure: ReportedFigure, id = "Q1") => reportGoals([figure]).find((goal) => goal.id === id);

test("each goal is measured by one figure, or says why by none", () => {
  const measuring = Object.values(figures as Readonly<Record<string, Figure>>).flatMap((figure) => figure.goals);
  const unmeasured = Object.entries(goals as Readonly<Record<string, Goal>>).filter(([, goal]) => goal.unmeasured);
  expect([...measuring, ...unmeasured.map(([id]) => id)].sort()).toEqual(Object.keys(goals).sort());
});

test("the bounds themselves are reached, and nothing beyond them", () => {
  const atMost: Goal = { ...goals.Q1, sense: "at most", target: 2, stretch: 1 };
  expect([1, 1.01, 2, 2.01].map((value) => verdict(value, atMost))).toEqual([
    "stretch",
    "reached",
    "reached",
    "missed",
  ]);
  const atLeast: Goal = { ...goals.Q1, sense: "at least", target: 2, stretch: 3 };
  expect([3, 2.99, 2, 1.99].map((value) => verdict(value, atLeast))).toEqual([
    "stretch",
    "reached",
    "reached",
    "missed",
  ]);
});

test("the median decides, and the extremes are told", () => {
  expect(goalOf(measured(9, 1.2, 1))).toMatchObject({
    kind: "measured",
    min: 1,
    median: 1.2,
    max: 9,
    verdict: "reached",
  });
});

test("a goal without a value says why", () => {
  const failed = goalOf(reported({ kind: "failed", reason: "the daemon's start: not within 30 s" }));
  expect(failed).toMatchObject({ kind: "not measured", reason: "the daemon's start: not within 30 s" });
  expect(goalOf(measured(Number.NaN))).toMatchObject({ kind: "not measured", reason: "latency gave no value" });
  const skipped = { rows: [], notes: [], unmeasured: { Q1: "no compiler" } };
  expect(goalOf(reported({ kind: "measured", measured: skipped }))).toMatchObject({ reason: "no compiler" });
  expect(goalOf(measured(1), "Q2 fresh")).toMatchObject({ reason: "its figure was not chosen" });
  expect(goalOf(measured(1), "P2")).toMatchObject({ reason: goals.P2.unmeasured });
});

test("a ratio needs both sides: no measurement is compared with itself or with fewer repetitions", () => {
  const values = [2, 4];
  expect(ratios(values, [1, 4])).toEqual([2, 1]);
  expect(() => ratios(values, values)).toThrow("two sides");
  expect(() => ratios(values, [1])).toThrow("two sides");
});

test("the cost of a further one leaves out what all share", () => {
  expect(marginal([10, 10], [109, 307], 99)).toEqual([1, 3]);
});

test("a quantile is a measured value, and the share is of all of them", () => {
  const values = Array.from({ length: 100 }, (_, i) => 100 - i);
  expect([0, 0.5, 0.9, 0.99, 1].map((share) => quantile(values, share))).toEqual([1, 51, 91, 100, 100]);
});
