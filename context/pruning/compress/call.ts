import { isRecord } from "../../../protocol/objects.ts";
import { emptyField, missingField, mostFindings, tooLong, tooMany, wrongField } from "./messages.ts";

/** A range of the transcript by the ids of its borders as written, and the summary that replaces it. */
export interface RangeCall {
  readonly startId: string;
  readonly endId: string;
  readonly summary: string;
}

/** A request to compress, by the model or by a user. */
export interface CompressCall {
  readonly topic: string;
  readonly ranges: readonly RangeCall[];
}

export const mostTopic = 80;
export const mostRanges = 16;
export const mostSummary = 60_000;
/** Length of an id with tags and quotes around it. */
const mostId = 256;
/** Length of `ranges` as JSON text; a fully escaped text is six times as long. */
const mostJson = 6 * mostRanges * (mostSummary + 1_024);

type Findings = readonly string[];
type Read = { readonly call: CompressCall } | { readonly findings: Findings };

/**
 * Reads the arguments of a compress call. Accepts a single range instead of a list, and JSON text instead of either;
 * ignores unknown fields and guesses nothing else. Returns all findings, at most ten.
 */
export function readCall(args: unknown): Read {
  const findings: string[] = [];
  const given = isRecord(args) ? args : {};
  const topic = text(given["topic"], "topic", "topic", mostTopic, findings);
  const ranges = rangesIn(given["ranges"], findings);
  if (topic === undefined || ranges === undefined || findings.length > 0) {
    return { findings: findings.slice(0, mostFindings) };
  }
  return { call: { topic, ranges } };
}

function rangesIn(given: unknown, findings: string[]): RangeCall[] | undefined {
  if (given === undefined || given === null) {
    findings.push(missingField("ranges"));
    return undefined;
  }
  const list = listOf(typeof given === "string" ? parsed(given) : given);
  if (list === undefined) {
    const isEmpty = typeof given === "string" && given.length <= mostId && given.trim() === "";
    findings.push(isEmpty ? emptyField("ranges") : wrongField("ranges", "a list of ranges"));
    return undefined;
  }
  if (list.length === 0) findings.push(emptyField("ranges"));
  if (list.length > mostRanges) findings.push(tooMany(list.length, mostRanges));
  return list.slice(0, mostRanges).flatMap((one, at) => rangeIn(one, at, findings) ?? []);
}

function listOf(given: unknown): readonly unknown[] | undefined {
  if (Array.isArray(given)) return given;
  return isRecord(given) ? [given] : undefined;
}

function parsed(json: string): unknown {
  if (json.length > mostJson) return undefined;
  try {
    return JSON.parse(json);
  } catch {
    return undefined;
  }
}

function rangeIn(given: unknown, at: number, findings: string[]): RangeCall | undefined {
  const name = `ranges[${at}]`;
  if (!isRecord(given)) {
    findings.push(wrongField(name, "a range"));
    return undefined;
  }
  const field = (key: string, most: number) => text(given[key], `${name}.${key}`, `${key} of ${name}`, most, findings);
  const startId = field("startId", mostId);
  const endId = field("endId", mostId);
  const summary = field("summary", mostSummary);
  return startId === undefined || endId === undefined || summary === undefined
    ? undefined
    : { startId, endId, summary };
}

function text(given: unknown, path: string, name: string, most: number, findings: string[]): string | undefined {
  const finding = whatIsWrong(given, path, name, most);
  if (finding !== undefined) findings.push(finding);
  return finding === undefined ? (given as string).toWellFormed() : undefined;
}

function whatIsWrong(given: unknown, path: string, name: string, most: number): string | undefined {
  if (given === undefined || given === null) return missingField(path);
  if (typeof given !== "string") return wrongField(path, "a text");
  if (given.length > most) return tooLong(name, given.length, most);
  return given.trim() === "" ? emptyField(name) : undefined;
}
