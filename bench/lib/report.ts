import { type Goal, type GoalId, goals, type Unit, type Verdict, verdict } from "../goals.ts";
import type { Measured, Row, Table } from "./figure.ts";
import type { Load } from "./load.ts";
import { median } from "./statistics.ts";

/** A reported row: its repetitions in three numbers. */
export interface ReportedRow extends Row {
  readonly min: number;
  readonly median: number;
  readonly max: number;
}

export interface ReportedFigure {
  readonly name: string;
  readonly title: string;
  /** Of the machine, immediately before and after the figure. */
  readonly load: { readonly before: Load; readonly after: Load };
  readonly seconds: number;
  readonly rows: readonly ReportedRow[];
  readonly tables: readonly Table[];
  readonly notes: readonly string[];
  readonly goals: readonly GoalId[];
  readonly unmeasured: Partial<Record<GoalId, string>>;
  /** Why the figure has no values. */
  readonly failure?: string;
}

export type ReportedGoal = { readonly id: GoalId } & Goal &
  (
    | {
        readonly kind: "measured";
        readonly figure: string;
        readonly row: string;
        readonly values: readonly number[];
        readonly load: ReportedFigure["load"];
        readonly min: number;
        readonly median: number;
        readonly max: number;
        readonly verdict: Verdict;
      }
    | { readonly kind: "not measured"; readonly reason: string }
  );

/** What a figure's process tells: what it measured, or why it failed. */
export type Outcome =
  | { readonly kind: "measured"; readonly measured: Measured }
  | { readonly kind: "failed"; readonly reason: string };

export function report(
  about: Pick<ReportedFigure, "name" | "title" | "goals" | "load" | "seconds">,
  outcome: Outcome,
): ReportedFigure {
  if (outcome.kind === "failed")
    return { ...about, rows: [], tables: [], notes: [], unmeasured: {}, failure: outcome.reason };
  const { rows, tables = [], notes, unmeasured = {} } = outcome.measured;
  return { ...about, rows: rows.map(reportRow), tables, notes, unmeasured };
}

function reportRow(row: Row): ReportedRow {
  return { ...row, min: Math.min(...row.values), median: median(row.values), max: Math.max(...row.values) };
}

/** Every goal with each row that has it, or with the reason why none has. */
export function reportGoals(figures: readonly ReportedFigure[]): readonly ReportedGoal[] {
  return (Object.entries(goals) as [GoalId, Goal][]).flatMap(([id, goal]): ReportedGoal[] => {
    const measured = figures.flatMap(({ name: figure, load, rows }) =>
      rows
        .filter((row) => row.goals?.includes(id) && !Number.isNaN(row.median))
        .map(({ name: row, values, min, median: middle, max }): ReportedGoal => {
          const reached = verdict(middle, goal);
          return {
            id,
            ...goal,
            kind: "measured",
            figure,
            row,
            values,
            load,
            min,
            median: middle,
            max,
            verdict: reached,
          };
        }),
    );
    if (measured.length > 0) return measured;
    return [{ id, ...goal, kind: "not measured", reason: goal.unmeasured ?? whyUnmeasured(id, figures) }];
  });
}

function whyUnmeasured(id: GoalId, figures: readonly ReportedFigure[]): string {
  const figure = figures.find((one) => one.goals.includes(id));
  if (figure === undefined) return "its figure was not chosen";
  return figure.failure ?? figure.unmeasured[id] ?? `${figure.name} gave no value`;
}

/** A figure as text: a line for each row, with minimum, median and maximum of its repetitions. */
export function format({ name, title, rows, tables, notes, load, seconds, failure }: ReportedFigure): string {
  const width = Math.max(...rows.map((row) => row.name.length));
  const lines = rows.map((row) =>
    `  ${row.name.padEnd(width)} ${spread(row)} ${row.unit.padEnd(6)} ${goalText(row)}`.trimEnd(),
  );
  const head = `  ${"".padEnd(width)} ${["min", "median", "max"].map((word) => word.padStart(9)).join(" ")}`;
  const values = rows.length === 0 ? [] : [head, ...lines];
  const said = [...notes, loadText(load, seconds)].map((note) => `  (${note})`);
  const failed = failure === undefined ? [] : [`  not measured: ${failure}`];
  return [`${name}: ${title}`, ...failed, ...values, ...tables.flatMap(tableLines), ...said, ""].join("\n");
}

/** The goals as text: a line for each value. */
export function formatGoals(reported: readonly ReportedGoal[]): string {
  const width = Math.max(...reported.map((goal) => goal.claim.length));
  const idWidth = Math.max(...reported.map(({ id }) => id.length));
  const head = `${"".padEnd(idWidth + width + 1)} ${["min", "median", "max"].map((word) => word.padStart(9)).join(" ")}`;
  const lines = reported.map((goal) => {
    const start = `${goal.id.padEnd(idWidth)} ${goal.claim.padEnd(width)}`;
    if (goal.kind === "not measured") return `${start} not measured: ${goal.reason}`;
    return `${start} ${spread(goal)} ${goal.unit.padEnd(6)} ${boundText(goal).padEnd(26)} ${goal.verdict} [${goal.figure}: ${goal.row}]`;
  });
  return [head, ...lines, ""].join("\n");
}

function spread({ min, median: middle, max, unit }: Pick<ReportedRow, "min" | "median" | "max" | "unit">): string {
  return [min, middle, max].map((value) => number(value, unit).padStart(9)).join(" ");
}

function loadText({ before, after }: ReportedFigure["load"], seconds: number): string {
  const text = ({ loadAverage, delayP50Ms, delayP99Ms }: Load): string =>
    `${loadAverage.toFixed(2)}, ${delayP50Ms.toFixed(2)} and ${delayP99Ms.toFixed(2)} ms`;
  return `${seconds.toFixed(0)} s; load average, and event-loop delay p50 and p99 of a bare Node: before ${text(before)}; after ${text(after)}`;
}

/** A table as text. */
export function tableLines({ title, columns, rows }: Table): readonly string[] {
  const digits = columns.map((_, at) => (rows.every((row) => Number.isInteger(row[at])) ? 0 : 3));
  const cell = (value: string | number, at: number): string =>
    typeof value === "string" ? value : value.toFixed(digits[at] ?? 0);
  const cells = [columns, ...rows.map((row) => row.map(cell))];
  const widths = columns.map((_, at) => Math.max(...cells.map((row) => row[at]?.length ?? 0)));
  const isText = columns.map((_, at) => typeof rows[0]?.[at] === "string");
  const lines = cells.map((row) =>
    row.map((cell, at) => (isText[at] ? cell.padEnd(widths[at] ?? 0) : cell.padStart(widths[at] ?? 0))).join("  "),
  );
  return [`  ${title}`, ...lines.map((line) => `    ${line}`.trimEnd())];
}

function goalText({ goals: ids = [], median: middle }: ReportedRow): string {
  const told = (id: GoalId): string => (Number.isNaN(middle) ? "not measured" : verdict(middle, goals[id]));
  return ids.map((id) => ` ${id} ${boundText(goals[id])}: ${told(id)}`).join(";");
}

function boundText({ sense, target, stretch, unit }: Goal): string {
  const bound = `${sense === "at most" ? "<=" : ">="} ${target}${unit === "x" ? "" : ` ${unit}`}`;
  return `${bound}${stretch === undefined ? "" : ` (stretch ${stretch})`}`;
}

function number(value: number, unit: Unit): string {
  if (unit === "rec/s" || unit === "1/s" || unit === "tokens" || unit === "events") return Math.round(value).toString();
  return value.toFixed(unit === "x" || unit === "ms" || unit === "us" ? 2 : 1);
}
