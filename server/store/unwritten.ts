import { WireError } from "../../protocol/errors.ts";
import type { Deferred } from "../lib/deferred.ts";
import type { Change } from "./writer.ts";

export interface Write extends Change {
  /** Approximate memory. */
  readonly bytes: number;
  readonly done: Deferred<void>;
  /** Whether a power failure must not undo it. */
  readonly isSynced: boolean;
  /** Writes of one group are stored all or not at all. */
  readonly group?: string;
  /** Retried until a newer write has this key. */
  readonly key?: string;
  /** No newer write is stored before this one. */
  readonly isFirst?: boolean;
}

export interface UnwrittenLimits {
  readonly maxUnwritten: number;
  readonly maxUnwrittenBytes: number;
}

export type StoreHealth =
  | { readonly state: "open" }
  /** Writes are refused, or fail, since then. Reads still work. */
  | { readonly state: "failing"; readonly since: number; readonly why: string };

/** First pause between two attempts to reopen the database, or to write unwritten changes. */
const firstRetryMs = 100;
const maxRetryMs = 10_000;

/**
 * The unwritten changes of a failing store, the newest of each key, up to a limit; and retries with growing pauses.
 */
export class Unwritten {
  readonly #retry: () => void;
  readonly #limits: UnwrittenLimits;
  readonly #writes = new Map<string, Write>();
  #bytes = 0;
  /** How many of them must be written before newer ones. */
  #first = 0;
  #health: StoreHealth = { state: "open" };
  #timer: NodeJS.Timeout | undefined;
  #retryMs = firstRetryMs;

  /** `retry` is called repeatedly while the store fails. */
  constructor(limits: UnwrittenLimits, retry: () => void) {
    this.#limits = limits;
    this.#retry = retry;
  }

  get health(): StoreHealth {
    return this.#health;
  }

  get size(): number {
    return this.#writes.size;
  }

  has(key: string): boolean {
    return this.#writes.has(key);
  }

  /** Whether new work must be refused, to leave room for updates of existing work. */
  get isCrowded(): boolean {
    const { maxUnwritten, maxUnwrittenBytes } = this.#limits;
    return this.#writes.size * 2 >= maxUnwritten || this.#bytes * 2 >= maxUnwrittenBytes;
  }

  /** Whether a change must be retried before any newer write. */
  get hasFirst(): boolean {
    return this.#first > 0;
  }

  /** The changes to retry next: up to the newest that must be first, otherwise all. */
  due(): readonly Write[] {
    const all = [...this.#writes.values()];
    return this.hasFirst ? all.slice(0, all.findLastIndex(({ isFirst }) => isFirst === true) + 1) : all;
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

  /** Rejects writes with `store_failed` and keeps those that have a key; if there is no room, with `overloaded`. */
  refuse(writes: readonly Write[], cause?: unknown): void {
    const why = this.#health.state === "failing" ? this.#health.why : "";
    const error = new WireError(
      "store_failed",
      `The store cannot be written (${why}); nothing was accepted.`,
      { retryAfterMs: Math.max(1_000, this.#retryMs) },
      { cause },
    );
    for (const write of writes) {
      const isKept = write.key === undefined || this.#keep(write.key, write);
      write.done.reject(isKept ? error : tooMuchWaits());
    }
  }

  /** A newer write for a key exists. */
  written(key: string): void {
    this.#delete(key);
  }

  /** These were written, or never can be. Newer ones stay. */
  forget(writes: readonly Write[]): void {
    for (const write of writes) {
      if (write.key !== undefined && this.#writes.get(write.key) === write) this.#delete(write.key);
    }
  }

  /** The store works again. */
  opened(): void {
    this.stop();
    this.#retryMs = firstRetryMs;
    this.#health = { state: "open" };
  }

  /** Stops retries. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Returns whether there was room: a newer change of a kept one always has room. */
  #keep(key: string, write: Write): boolean {
    const { maxUnwritten, maxUnwrittenBytes } = this.#limits;
    const isFull = this.#writes.size >= maxUnwritten || this.#bytes + write.bytes > maxUnwrittenBytes;
    const former = this.#writes.get(key);
    if (isFull && former === undefined) return false;
    // The replacement keeps the order constraint.
    const isFirst = write.isFirst === true || former?.isFirst === true;
    this.#delete(key);
    this.#writes.set(key, isFirst ? { ...write, isFirst } : write);
    if (isFirst) this.#first += 1;
    this.#bytes += write.bytes;
    return true;
  }

  #delete(key: string): void {
    const write = this.#writes.get(key);
    this.#bytes -= write?.bytes ?? 0;
    if (write?.isFirst === true) this.#first -= 1;
    this.#writes.delete(key);
  }
}

/** Why a working store refuses a write. */
export function tooMuchWaits(): WireError {
  return new WireError("overloaded", "Too many writes wait for the disk; nothing was accepted.", {
    retryAfterMs: 1_000,
  });
}
