import { isRecord } from "../../../protocol/objects.ts";
import { countLines } from "./pages.ts";

/** The placeholder of a removed output. */
export interface Placeholder {
  readonly tool: string;
  /** The call's arguments. Absent: the call is unknown. */
  readonly args?: unknown;
  readonly text: string;
  readonly images: number;
  readonly isError: boolean;
  /** The reason: `masked`, `pruned, repeated below`. */
  readonly why: string;
  readonly recallId: string;
}

const maxDigest = 80;

/** Returns for example `[read src/a.ts: 14.0 KB, 320 lines, ok; masked; recall r012]`. Absent facts are omitted. */
export function placeholderOf({ tool, args, text, images, isError, why, recallId }: Placeholder): string {
  const digest = digestOf(args);
  const facts = [
    ...(text === "" ? [] : [sizeOf(text), linesOf(text)]),
    ...(images === 0 ? [] : [images === 1 ? "1 image" : `${images} images`]),
    isError ? errorOf(text) : "ok",
  ];
  return `[${tool}${digest === "" ? "" : ` ${digest}`}: ${facts.join(", ")}; ${why}; recall ${recallId}]`;
}

const tellingArguments = ["path", "file_path", "command", "pattern", "query", "url", "id", "name"];

/** Summarizes a call's arguments on one line. */
export function digestOf(args: unknown): string {
  if (!isRecord(args)) return "";
  const telling = tellingArguments.map((name) => args[name]).find((value) => typeof value === "string" && value !== "");
  const whole = typeof telling === "string" ? telling : Object.keys(args).length === 0 ? "" : asJson(args);
  const line = whole
    .slice(0, 4 * maxDigest)
    .replaceAll(/\s+/gu, " ")
    .trim();
  const short = line.length <= maxDigest ? line : `${line.slice(0, maxDigest - 1)}…`;
  return short.toWellFormed();
}

function asJson(value: unknown): string {
  try {
    return JSON.stringify(value) ?? "";
  } catch {
    return "";
  }
}

export function sizeOf(text: string): string {
  const bytes = Buffer.byteLength(text);
  if (bytes < 1_024) return `${bytes} B`;
  return bytes < 1_048_576 ? `${(bytes / 1_024).toFixed(1)} KB` : `${(bytes / 1_048_576).toFixed(1)} MB`;
}

function linesOf(text: string): string {
  const lines = countLines(text);
  return lines === 1 ? "1 line" : `${lines} lines`;
}

function errorOf(text: string): string {
  const code = /exited with code (\d{1,5})\s*$/u.exec(text.slice(-64))?.[1];
  return code === undefined ? "error" : `exit code ${code}`;
}
