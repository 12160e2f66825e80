import type { Goal, Measured, Row, Table, Unit } from "./figure.ts";
import { median } from "./statistics.ts";

export type Verdict = "stretch reached" | "reached" | "missed";

/** A reported row: its repetitions in three numbers, and whether its goal is met. */
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
  readonly tables: readonly Table[];
  readonly notes: readonly string[];
}

export function report(name: string, title: string, { rows, tables = [], notes }: Measured): ReportedFigure {
  return { name, title, rows: rows.map(reportRow), tables, notes };
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
export function format({ name, title, rows, tables, notes }: ReportedFigure): string {
  const width = Math.max(...rows.map((row) => row.name.length));
  const lines = rows.map((row) => {
    const values = [row.min, row.median, row.max].map((value) => number(value, row.unit).padStart(9)).join(" ");
    return `  ${row.name.padEnd(width)} ${values} ${row.unit.padEnd(5)} ${goalText(row)}`.trimEnd();
  });
  const head = `  ${"".padEnd(width)} ${["min", "median", "max"].map((word) => word.padStart(9)).join(" ")}`;
  const values = rows.length === 0 ? [] : [head, ...lines];
  const said = notes.map((note) => `  (${note})`);
  return [`${name}: ${title}`, ...values, ...tables.flatMap(tableLines), ...said, ""].join("\n");
}

function tableLines({ title, columns, rows }: Table): readonly string[] {
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

function goalText({ goal, unit, verdict: outcome }: ReportedRow): string {
  if (goal === undefined) return "";
  const bound = `${goal.sense === "at most" ? "<=" : ">="} ${goal.target}${unit === "x" ? "" : ` ${unit}`}`;
  const stretch = goal.stretch === undefined ? "" : ` (stretch ${goal.stretch})`;
  return ` ${goal.id} ${bound}${stretch}: ${outcome}`;
}

function number(value: number, unit: Unit): string {
  if (unit === "rec/s" || unit === "1/s" || unit === "tokens") return Math.round(value).toString();
  return value.toFixed(unit === "x" || unit === "ms" || unit === "us" ? 2 : 1);
}
