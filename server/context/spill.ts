import { readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import { SpillDirectories } from "./spill-directories.ts";
import { findUnreferred, type ScanLimits } from "./spill-references.ts";

export interface SpillOptions {
  /** Texts that parts inside pi moved out of transcripts, by their SHA-256. It need not exist. */
  readonly directory: string;
  /** The list of directories of sessions that may refer to them. */
  readonly notes: string;
  /** pi's own directory of sessions. */
  readonly sessionRoot: string;
  /**
   * Whether a session may refer to texts that no file mentions: it exists only in its pi's memory, or a run is
   * active, which writes results when its turn is complete.
   */
  readonly isAnyUnwritten: () => boolean;
  /** The files of all open sessions, and whether texts may be removed. */
  readonly sessions: () => Iterable<{ readonly directory: string; readonly hasParts: boolean }>;
  readonly limits: SpillLimits;
  readonly log: Logger;
}

export interface SpillLimits extends ScanLimits {
  /** Younger texts are kept: their reference may not be in a session file yet. */
  readonly graceMs: number;
  /** Maximum number of session directories. With more, nothing is removed. */
  readonly maxDirectories: number;
  /** How long a directory may be missing before it counts as deleted. Until then nothing is removed. */
  readonly keepAwayMs: number;
}

interface Candidate {
  readonly name: string;
  readonly mtimeMs: number;
}

/** A text, or one that was being written when its pi ended. */
const ours = /^(?:[0-9a-f]{64}|\.[0-9a-f]{64}\.[0-9a-f-]{36})$/;
const setAside = "removed.";

/**
 * Removes texts that no session file refers to. In doubt it keeps them: a missing text cannot be recalled, a
 * superfluous one only uses space.
 */
export class Spill {
  readonly #options: SpillOptions;
  readonly #directories: SpillDirectories;
  readonly #closing = new AbortController();
  #sweeping: Promise<void> = Promise.resolve();
  #isWanted = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: SpillOptions) {
    this.#options = options;
    this.#directories = new SpillDirectories(options.notes, options.limits, options.log);
  }

  /** A session with this file may refer to texts from now on. On disk when it returns. */
  note(directory: string): void {
    this.#directories.note(directory);
  }

  /** Session files were deleted: removes the texts that only they referred to, once these are old enough. */
  wanted(): void {
    if (this.#isWanted || this.#closing.signal.aborted) return;
    this.#isWanted = true;
    void this.sweep();
  }

  /** Searches all session files once. Never rejects. */
  sweep(): Promise<void> {
    this.#sweeping = this.#sweeping.then(async () => {
      this.#isWanted = false;
      try {
        if (!this.#closing.signal.aborted) await this.#sweep();
      } catch (error) {
        if (!this.#closing.signal.aborted) {
          this.#options.log.warn({ err: error }, "cannot search session files for spilled texts");
        }
      }
    });
    return this.#sweeping;
  }

  /** Resolves when no search is in progress. */
  close(): Promise<void> {
    this.#closing.abort();
    clearTimeout(this.#timer);
    return this.#sweeping;
  }

  async #sweep(): Promise<void> {
    const { limits, isAnyUnwritten, sessionRoot: root, log } = this.#options;
    const { candidates, youngest } = await this.#candidates(Date.now() - limits.graceMs);
    if (youngest !== undefined) this.#again(youngest);
    if (candidates.length === 0) return;
    if (isAnyUnwritten()) return this.#again(Date.now() + limits.graceMs);
    const others: string[] = [];
    for (const { directory, hasParts } of this.#options.sessions()) {
      if (hasParts) this.#directories.note(directory);
      else others.push(directory);
    }
    const noted = await this.#directories.all();
    if (noted === undefined) return;
    const names = new Set(candidates.map(({ name }) => name));
    const { signal } = this.#closing;
    const left = await findUnreferred({ root, directories: [...noted, ...others] }, names, limits, signal);
    if (left === "changing") return this.#again(Date.now() + limits.graceMs);
    if (left === "too_much") {
      log.warn("session files exceed the search limit; no spilled text is removed");
      return;
    }
    let removed = 0;
    for (const candidate of candidates) {
      signal.throwIfAborted();
      if (left.has(candidate.name) && (await this.#remove(candidate))) removed += 1;
    }
    if (removed > 0) log.info({ removed }, "removed spilled texts that no session file refers to");
  }

  /** The files that are old enough, and the time when the next one will be. */
  async #candidates(before: number): Promise<{ readonly candidates: Candidate[]; readonly youngest?: number }> {
    const { directory, limits } = this.#options;
    const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [] as string[];
      throw error;
    });
    await this.#putBack(names);
    const candidates: Candidate[] = [];
    let youngest: number | undefined;
    for (const name of names) {
      if (!ours.test(name)) continue;
      this.#closing.signal.throwIfAborted();
      const found = await stat(join(directory, name)).catch(() => undefined);
      if (found?.isFile() !== true) continue;
      const { mtimeMs } = found;
      if (mtimeMs < before) candidates.push({ name, mtimeMs });
      else youngest = Math.min(youngest ?? Number.POSITIVE_INFINITY, mtimeMs + limits.graceMs);
    }
    return { candidates, ...(youngest === undefined ? {} : { youngest }) };
  }

  /** A process that writes the same text now touches the file, so it is checked again. */
  async #remove({ name, mtimeMs }: Candidate): Promise<boolean> {
    const { directory } = this.#options;
    const path = join(directory, name);
    const aside = join(directory, `${setAside}${name}`);
    try {
      await rename(path, aside);
      if ((await stat(aside)).mtimeMs !== mtimeMs) {
        await rename(aside, path);
        return false;
      }
      await rm(aside, { force: true });
      return true;
    } catch (error) {
      this.#options.log.warn({ err: error }, "cannot remove an unreferenced spilled text");
      return false;
    }
  }

  /** A daemon was killed between the two steps of a removal: the text is checked again. */
  async #putBack(names: string[]): Promise<void> {
    const { directory } = this.#options;
    for (const name of names.filter((one) => one.startsWith(setAside) && ours.test(one.slice(setAside.length)))) {
      const before = name.slice(setAside.length);
      if (names.includes(before)) await rm(join(directory, name), { force: true });
      else {
        await rename(join(directory, name), join(directory, before));
        names.push(before);
      }
    }
  }

  #again(at: number): void {
    clearTimeout(this.#timer);
    const delay = Math.min(Math.max(1_000, at - Date.now()), 2 ** 31 - 1);
    this.#timer = setTimeout(() => void this.sweep(), delay).unref();
  }
}
