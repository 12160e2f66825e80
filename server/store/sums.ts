import { crc32 } from "node:zlib";

/** Kept beside a text, so that a bit that has changed in it is noticed. */
export function sumOf(text: string): number {
  return crc32(text);
}

/** Whether a column is the text that was written. Without a sum, or a column for it, it is of an older version, and believed. */
export function isSound(text: unknown, sum: unknown): text is string {
  return typeof text === "string" && ((sum ?? null) === null || sum === sumOf(text));
}
