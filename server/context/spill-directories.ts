import { readFileSync, writeFileSync } from "node:fs";
import { stat } from "node:fs/promises";
import { isAbsolute } from "node:path";
import type { Logger } from "pino";
import { writePrivate } from "../lib/private-file.ts";

export interface DirectoryLimits {
  readonly maxDirectories: number;
  readonly keepAwayMs: number;
}

/** The directories of sessions that may refer to spilled texts, across daemons. */
export class SpillDirectories {
  readonly #file: string;
  readonly #limits: DirectoryLimits;
  readonly #log: Logger;
  /** The time when each directory was last seen; undefined: the list is incomplete, permanently. */
  #seen: Map<string, number> | undefined;
  /** The stored list is complete. */
  #isWritten = true;

  constructor(file: string, limits: DirectoryLimits, log: Logger) {
    this.#file = file;
    this.#limits = limits;
    this.#log = log;
    this.#seen = this.#read();
  }

  /**
   * On disk when it returns. If that fails, the file on disk marks the list as incomplete, so that no text is
   * removed.
   */
  note(directory: string): void {
    if (this.#seen === undefined || (this.#isWritten && this.#seen.has(directory))) return;
    if (!this.#seen.has(directory) && this.#seen.size >= this.#limits.maxDirectories) {
      this.#log.warn("sessions are in too many directories; no spilled text is removed any more");
      this.#seen = undefined;
      this.#damage();
      return;
    }
    this.#seen.set(directory, Date.now());
    this.#write();
  }

  /** The directories that exist. Undefined: the list is incomplete, or one is missing that may come back. */
  async all(): Promise<readonly string[] | undefined> {
    const seen = this.#seen;
    if (seen === undefined) return undefined;
    const now = Date.now();
    let isAway = false;
    for (const [directory, at] of [...seen]) {
      const isThere = await stat(directory).then(
        (found) => found.isDirectory(),
        () => false,
      );
      if (isThere) seen.set(directory, now);
      else if (now - at > this.#limits.keepAwayMs) seen.delete(directory);
      else isAway = true;
    }
    this.#write();
    // One directory too many may have been added in the meantime.
    return isAway || !this.#isWritten || this.#seen === undefined ? undefined : [...seen.keys()];
  }

  #write(): void {
    if (this.#seen === undefined) return;
    try {
      writePrivate(this.#file, JSON.stringify([...this.#seen]));
      this.#isWritten = true;
    } catch (error) {
      this.#damage();
      this.#log.warn({ err: error }, "cannot write the list of session directories; no spilled text is removed");
    }
  }

  /** An empty file is unreadable, and needs no space on a full disk. */
  #damage(): void {
    this.#isWritten = false;
    try {
      writeFileSync(this.#file, "", { mode: 0o600 });
    } catch {
      // The disk accepts nothing at all. The next daemon adds the directories of its own sessions.
    }
  }

  #read(): Map<string, number> | undefined {
    try {
      const value: unknown = JSON.parse(readFileSync(this.#file, "utf8"));
      if (!Array.isArray(value) || !value.every(isNote)) throw new Error("It has an unexpected format.");
      return new Map(value);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
      this.#log.warn({ err: error }, "cannot read the list of session directories; no spilled text is removed");
      return undefined;
    }
  }
}

function isNote(value: unknown): value is [string, number] {
  return Array.isArray(value) && typeof value[0] === "string" && isAbsolute(value[0]) && Number.isFinite(value[1]);
}
