import { readFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import type { Logger } from "pino";
import { writePrivate } from "../lib/private-file.ts";

export interface DirectoryLimits {
  readonly maxDirectories: number;
  readonly keepAwayMs: number;
}

/** The directories in which sessions lie that may refer to spilled texts, across daemons. */
export class SpillDirectories {
  readonly #file: string;
  readonly #limits: DirectoryLimits;
  readonly #log: Logger;
  /** When each was last there; undefined: what was written down cannot be read. */
  readonly #seen: Map<string, number> | undefined;
  #isFull = false;

  constructor(file: string, limits: DirectoryLimits, log: Logger) {
    this.#file = file;
    this.#limits = limits;
    this.#log = log;
    this.#seen = this.#read();
  }

  /** On disk when it returns, unless the disk is full; nothing is removed then in this daemon's life. */
  note(directory: string): void {
    if (this.#seen === undefined || this.#isFull || this.#seen.has(directory)) return;
    if (this.#seen.size >= this.#limits.maxDirectories) {
      this.#isFull = true;
      return;
    }
    this.#seen.set(directory, Date.now());
    this.#write();
  }

  /** Those that are there. Undefined: not all are known, or one is away that may come back. */
  async all(): Promise<readonly string[] | undefined> {
    if (this.#seen === undefined || this.#isFull) return undefined;
    const now = Date.now();
    let isAway = false;
    for (const [directory, at] of [...this.#seen]) {
      const isThere = await stat(directory).then(
        (found) => found.isDirectory(),
        () => false,
      );
      if (isThere) this.#seen.set(directory, now);
      else if (now - at > this.#limits.keepAwayMs) this.#seen.delete(directory);
      else isAway = true;
    }
    this.#write();
    return isAway || this.#isFull ? undefined : [...this.#seen.keys()];
  }

  #write(): void {
    if (this.#seen === undefined) return;
    try {
      writePrivate(this.#file, JSON.stringify([...this.#seen]));
    } catch (error) {
      this.#isFull = true;
      this.#log.warn({ err: error }, "where sessions lie could not be written down; no spilled text is removed");
    }
  }

  #read(): Map<string, number> | undefined {
    try {
      const value: unknown = JSON.parse(readFileSync(this.#file, "utf8"));
      if (!Array.isArray(value) || !value.every(isNote)) throw new Error("It holds something else.");
      return new Map(value);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
      this.#log.warn({ err: error }, "where sessions lie could not be read; no spilled text is removed");
      return undefined;
    }
  }
}

function isNote(value: unknown): value is [string, number] {
  return Array.isArray(value) && typeof value[0] === "string" && isAbsolute(value[0]) && Number.isFinite(value[1]);
}
