import { isRecord } from "../protocol/objects.ts";
import { UsageError } from "./errors.ts";

/** The option or argument that a text was given for. */
export interface Given {
  readonly option: string;
  readonly command: string;
}

/** A TCP port; 0 lets the system choose. */
export function port(text: string, { option, command }: Given): number {
  const number = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
  if (number <= 65_535) return number;
  throw new UsageError(`--${option} takes a number from 0 to 65535, not "${text}".`, command);
}

/** Parses a time in seconds; returns milliseconds. */
export function seconds(text: string, { option, command }: Given): number {
  const number = /^\d+(\.\d+)?$/.test(text) ? Number(text) : Number.NaN;
  // A timer does not support longer times.
  if (number <= 2_000_000) return Math.round(number * 1_000);
  throw new UsageError(`--${option} takes seconds, from 0 to 2000000, not "${text}".`, command);
}

/** Parses a whole number within limits. */
export function wholeNumber(
  text: string,
  { option, command }: Given,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  const number = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new UsageError(`--${option} takes a number from ${min} to ${max}, not "${text}".`, command);
}

export function list(text: string, { option, command }: Given): string[] {
  const items = text.split(",").map((item) => item.trim());
  if (items.every((item) => item !== "")) return items;
  throw new UsageError(`--${option} takes names separated by commas, not "${text}".`, command);
}

/** Parses labels (`a=b`), separated by commas; a name without a text has the empty text. */
export function labels(text: string, given: Given): Record<string, string> {
  return Object.fromEntries(
    list(text, given).map((item) => {
      const at = item.indexOf("=");
      return at === -1 ? [item, ""] : [item.slice(0, at), item.slice(at + 1)];
    }),
  );
}

/** Parses web origins as a browser sends them. */
export function origins(text: string, given: Given): string[] {
  const items = list(text, given);
  const wrong = items.find((item) => !URL.canParse(item) || new URL(item).origin !== item);
  if (wrong === undefined) return items;
  throw new UsageError(`--${given.option} takes origins such as http://localhost:5173, not "${wrong}".`, given.command);
}

export function jsonObject(text: string, { option, command }: Given): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`--${option} takes JSON: ${(error as Error).message}.`, command);
  }
  if (isRecord(value)) return value;
  throw new UsageError(`--${option} takes a JSON object, not ${shown(value)}.`, command);
}

function shown(value: unknown): string {
  return Array.isArray(value) ? "an array" : value === null ? "null" : `a ${typeof value}`;
}
