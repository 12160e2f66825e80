import { createHash } from "node:crypto";
import { existsSync, writeFileSync } from "node:fs";
import type { BodyFacts } from "../../protocol/link.ts";

export interface BodyPlace {
  /** What the daemon has named: the beginning of each file's path. */
  readonly prefix: string;
  readonly maxBytes: number;
}

/** Files that the daemon has not taken yet. It takes each at once: more of them mean that it does not. */
const maxLeft = 16;

/**
 * Leaves bodies of requests for the daemon as files that only this user can read. They do not go through the status
 * channel: pi neither bounds nor slows down what waits there, and would escape the text twice.
 */
export class Bodies {
  #left: string[] = [];

  /** Leaves a text, unless it is too large or the daemon does not take what is there. */
  leave(place: BodyPlace, name: string, text: string): BodyFacts {
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
