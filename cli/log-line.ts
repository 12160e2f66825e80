import type { Output, Style } from "./output.ts";
import { oneLine } from "./text.ts";

const levels: Readonly<Record<number, readonly [name: string, style: Style]>> = {
  10: ["TRACE", "dim"],
  20: ["DEBUG", "dim"],
  30: ["INFO ", "green"],
  40: ["WARN ", "yellow"],
  50: ["ERROR", "red"],
  60: ["FATAL", "red"],
};

/** Prints a daemon's log line by line on a terminal; undefined if a program may read the output. */
export function readableLines(output: Output): { write(line: string): void } | undefined {
  if (output.json || !output.isTerminalAside) return undefined;
  const paint: Output["paint"] = (style, text) => output.paintAside(style, text);
  return { write: (line) => output.aside(logLine(line.trimEnd(), { paint })) };
}

/** Formats a line of the daemon's log for people. Other lines are unchanged. */
export function logLine(line: string, output: Pick<Output, "paint">): string {
  const record = recordOf(line);
  if (record === undefined) return oneLine(line);
  const { level, time, msg, pid: _pid, hostname: _hostname, ...rest } = record;
  const [name, style] = levels[Number(level)] ?? [oneLine(String(level ?? "")), "dim"];
  const at = dated(time) ?? oneLine(String(time ?? ""));
  const facts = Object.entries(rest).map(([key, value]) => `${key}=${shown(value)}`);
  const text = [oneLine(String(msg ?? "")), ...facts.map((fact) => output.paint("dim", oneLine(fact)))].join(" ");
  return `${output.paint("dim", at)} ${output.paint(style, name)} ${text}`;
}

function dated(time: unknown): string | undefined {
  const date = typeof time === "number" ? new Date(time) : undefined;
  return date === undefined || Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

function recordOf(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null && "msg" in value
      ? (value as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
}

function shown(value: unknown): string {
  if (typeof value === "string") return /[\s=]/.test(value) ? JSON.stringify(value) : value;
  const error = value as { readonly message?: unknown } | null;
  if (typeof error === "object" && typeof error?.message === "string") return JSON.stringify(error.message);
  return JSON.stringify(value);
}
