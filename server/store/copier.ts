import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import type { ChangeLog } from "./change-log.ts";

export interface CopyLimits {
  readonly copyAfterMs: number;
  readonly copyEveryMs: number;
  readonly copyAtLogBytes: number;
}

export interface CopierOptions {
  /** The database's file. */
  readonly path: string;
  readonly log: ChangeLog;
  readonly limits: CopyLimits;
  /** The number of the newest commit. */
  readonly commits: () => number;
  /** Whether this daemon still holds the directory. */
  readonly isHeld: () => boolean;
  readonly onFailure: (error: unknown) => void;
  /** Writes a copy, and returns the number of its newest commit. Default: in a thread of its own. */
  readonly write?: (path: string, signal: AbortSignal) => Promise<number>;
}

/** How often it is checked whether a copy is due. */
const lookEveryMs = 5_000;

/**
 * Copies the store regularly, in a thread that lives as long as the copy takes. So writing is not delayed, and the log
 * of changes stays short.
 */
export class Copier {
  readonly #options: CopierOptions;
  readonly #ended = new AbortController();
  readonly #timer: NodeJS.Timeout;
  /** When the last copy began, or this object. */
  #triedAt = performance.now();
  #copied: number | undefined;
  #failure: string | undefined;
  #isRunning = false;

  constructor(options: CopierOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.#look(), lookEveryMs).unref();
  }

  /** Why the last copy failed, or changes since it are not logged. */
  get failure(): string | undefined {
    const { holes } = this.#options.log;
    return this.#failure ?? (holes > 0 ? `${holes} transactions since the last copy could not be logged.` : undefined);
  }

  close(): void {
    clearInterval(this.#timer);
    this.#ended.abort();
  }

  /** Makes a copy now. Never rejects. */
  async copy(): Promise<void> {
    const { path, log, onFailure, write = inThread } = this.#options;
    this.#isRunning = true;
    this.#triedAt = performance.now();
    try {
      const done = log.turn();
      this.#copied = await write(path, this.#ended.signal);
      done();
      this.#failure = undefined;
    } catch (error) {
      if (this.#ended.signal.aborted) return;
      this.#failure = `The store cannot be copied: ${(error as Error).message}`;
      onFailure(error);
    } finally {
      this.#isRunning = false;
    }
  }

  async #look(): Promise<void> {
    const { log, limits, commits, isHeld } = this.#options;
    const age = performance.now() - this.#triedAt;
    const isLate = this.#copied === undefined || this.#failure !== undefined || log.holes > 0;
    const isDue = age >= (isLate ? limits.copyAfterMs : limits.copyEveryMs) || this.#isFull();
    if (!this.#isRunning && isDue && commits() !== this.#copied && isHeld()) await this.copy();
  }

  /** Not while copies fail: they are tried at intervals. */
  #isFull(): boolean {
    return this.#failure === undefined && this.#options.log.bytes >= this.#options.limits.copyAtLogBytes;
  }
}

/** Rejects if it fails, or if the signal ends it. */
function inThread(path: string, signal: AbortSignal): Promise<number> {
  return new Promise((resolve, reject) => {
    const entry = new URL(`./copying-thread${extname(import.meta.filename)}`, import.meta.url);
    const worker = new Worker(entry, { name: "store copy", workerData: path });
    const end = (): void => void worker.terminate();
    signal.addEventListener("abort", end);
    worker.unref();
    worker.on("message", resolve);
    worker.on("error", reject);
    worker.on("exit", (code) => {
      signal.removeEventListener("abort", end);
      reject(new Error(`The copying thread ended with code ${code}.`));
    });
  });
}
