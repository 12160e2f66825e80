import { WireError } from "../../protocol/errors.ts";
import type { Deferred } from "../lib/deferred.ts";
import type { Change } from "./writer.ts";

export interface Write extends Change {
  /** What it takes in memory, about. */
  readonly bytes: number;
  readonly done: Deferred<void>;
  /** What has the same is stored together, or not at all. */
  readonly group?: string;
  /** It is made again, as long as nothing newer has this key. */
  readonly key?: string;
}

export type StoreHealth =
  | { readonly state: "open" }
  /** Writes are refused, or fail, since then. Reads go on. */
  | { readonly state: "failing"; readonly since: number; readonly why: string };

/** Between two attempts to open the database again, or to write what could not be written. */
const firstRetryMs = 100;
const maxRetryMs = 10_000;

/** What a store that fails owes: the newest change of each key, and another attempt after a growing pause. */
export class Unwritten {
  readonly #retry: () => void;
  readonly #writes = new Map<string, Write>();
  #health: StoreHealth = { state: "open" };
  #timer: NodeJS.Timeout | undefined;
  #retryMs = firstRetryMs;

  /** `retry` is called again and again, as long as the store fails. */
  constructor(retry: () => void) {
    this.#retry = retry;
  }

  get health(): StoreHealth {
    return this.#health;
  }

  get size(): number {
    return this.#writes.size;
  }

  /** What is to be made again. */
  all(): readonly Write[] {
    return [...this.#writes.values()];
  }

  failing({ message: why }: Error): void {
    const since = this.#health.state === "failing" ? this.#health.since : Date.now();
    this.#health = { state: "failing", since, why };
  }

  retryLater(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#retryMs = Math.min(this.#retryMs * 2, maxRetryMs);
      this.#retry();
    }, this.#retryMs).unref();
  }

  /** Rejects writes with `store_failed`, and keeps those that have a key. */
  refuse(writes: readonly Write[], cause?: unknown): void {
    const why = this.#health.state === "failing" ? this.#health.why : "";
    const error = new WireError(
      "store_failed",
      `The store could not be written (${why}); nothing was accepted.`,
      { retryAfterMs: Math.max(1_000, this.#retryMs) },
      { cause },
    );
    for (const write of writes) {
      if (write.key !== undefined) this.#writes.set(write.key, write);
      write.done.reject(error);
    }
  }

  /** Something newer than all that is here was written for a key. */
  written(key: string): void {
    this.#writes.delete(key);
  }

  /** These were made again, or never can be. What is newer stays. */
  forget(writes: readonly Write[]): void {
    for (const write of writes) {
      if (write.key !== undefined && this.#writes.get(write.key) === write) this.#writes.delete(write.key);
    }
  }

  /** The store can be written again. */
  opened(): void {
    this.stop();
    this.#retryMs = firstRetryMs;
    this.#health = { state: "open" };
  }

  /** Nothing is tried again by itself. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
