import type { Goal, Measured, Row, Unit } from "./figure.ts";
import { median } from "./statistics.ts";

export type Verdict = "stretch reached" | "reached" | "missed";

/** A row as it is reported: its repetitions in three numbers, and what became of its goal. */
export interface ReportedRow extends Row {
  readonly min: number;
  readonly median: number;
  readonly max: number;
  readonly verdict?: Verdict;
}

export interface ReportedFigure {
  readonly name: string;
  readonly title: string;
  readonly rows: readonly ReportedRow[];
  readonly notes: readonly string[];
}

export function report(name: string, title: string, { rows, notes }: Measured): ReportedFigure {
  return { name, title, rows: rows.map(reportRow), notes };
}

function reportRow(row: Row): ReportedRow {
  const middle = median(row.values);
  return {
    ...row,
    min: Math.min(...row.values),
    median: middle,
    max: Math.max(...row.values),
    ...(row.goal !== undefined && { verdict: verdict(middle, row.goal) }),
  };
}

function verdict(value: number, { sense, target, stretch }: Goal): Verdict {
  const reaches = (bound: number): boolean => (sense === "at most" ? value <= bound : value >= bound);
  if (stretch !== undefined && reaches(stretch)) return "stretch reached";
  return reaches(target) ? "reached" : "missed";
}

/** A figure as text: a line for each row, with minimum, median and maximum of its repetitions. */
export function format({ name, title, rows, notes }: ReportedFigure): string {
  const width = Math.max(...rows.map((row) => row.name.length));
  const lines = rows.map((row) => {
    const values = [row.min, row.median, row.max].map((value) => number(value, row.unit).padStart(9)).join(" ");
    return `  ${row.name.padEnd(width)} ${values} ${row.unit.padEnd(5)} ${goalText(row)}`.trimEnd();
  });
  const head = `  ${"".padEnd(width)} ${["min", "median", "max"].map((word) => word.padStart(9)).join(" ")}`;
  return [`${name}: ${title}`, head, ...lines, ...notes.map((note) => `  (${note})`), ""].join("\n");
}

function goalText({ goal, unit, verdict: outcome }: ReportedRow): string {
  if (goal === undefined) return "";
  const bound = `${goal.sense === "at most" ? "<=" : ">="} ${goal.target}${unit === "x" ? "" : ` ${unit}`}`;
  const stretch = goal.stretch === undefined ? "" : ` (stretch ${goal.stretch})`;
  return ` ${goal.id} ${bound}${stretch}: ${outcome}`;
}

function number(value: number, unit: Unit): string {
  if (unit === "rec/s" || unit === "1/s") return Math.round(value).toString();
  return value.toFixed(unit === "x" || unit === "ms" || unit === "us" ? 2 : 1);
}
