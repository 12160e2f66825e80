import { crc32 } from "node:zlib";

/** Stored next to a text to detect changed bits. */
export function checksumOf(text: string): number {
  return crc32(text);
}

/** Whether a column contains the written text. Rows of older versions have no checksum and are trusted. */
export function isSound(text: unknown, sum: unknown): text is string {
  return typeof text === "string" && ((sum ?? null) === null || sum === checksumOf(text));
}
