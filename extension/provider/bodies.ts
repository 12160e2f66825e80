import { createHash } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import type { BodyFacts } from "../../protocol/link-outward.ts";

export interface BodyTarget {
  /** Prefix of each file's path, chosen by the daemon. */
  readonly prefix: string;
  readonly maxBytes: number;
}

/** Limit of files not yet taken. The daemon takes each immediately, so more mean that it has stopped. */
const maxLeft = 16;

/**
 * Writes request bodies for the daemon to files that only this user can read. The status channel is unsuitable: pi
 * neither limits its queue nor applies back-pressure, and would escape the text twice.
 */
export class BodyFiles {
  #left: string[] = [];

  /** Writes a text, unless it is too large or too many files are waiting. */
  leave(place: BodyTarget, name: string, text: string): BodyFacts {
    const bytes = Buffer.byteLength(text);
    this.#left = this.#left.filter((path) => existsSync(path));
    if (bytes > place.maxBytes || this.#left.length >= maxLeft) return { bytes, isLeft: false };
    const path = `${place.prefix}${name}`;
    try {
      writeFileSync(path, text, { mode: 0o600, flag: "wx" });
    } catch {
      return { bytes, isLeft: false };
    }
    this.#left.push(path);
    return { bytes, isLeft: true };
  }
}

/** Size and hash of a text in UTF-8. */
export function factsOf(text: string): { readonly payloadBytes: number; readonly payloadSha256: string } {
  return { payloadBytes: Buffer.byteLength(text), payloadSha256: createHash("sha256").update(text).digest("hex") };
}
