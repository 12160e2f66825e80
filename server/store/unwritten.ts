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
  /** While it is owed, nothing newer is written. */
  readonly isFirst?: boolean;
}

export interface UnwrittenLimits {
  readonly maxUnwritten: number;
  readonly maxUnwrittenBytes: number;
}

export type StoreHealth =
  | { readonly state: "open" }
  /** Writes are refused, or fail, since then. Reads go on. */
  | { readonly state: "failing"; readonly since: number; readonly why: string };

/** Between two attempts to open the database again, or to write what could not be written. */
const firstRetryMs = 100;
const maxRetryMs = 10_000;

/**
 * What a store that fails owes: the newest change of each key, as many as may be, and another attempt after a growing
 * pause.
 */
export class Unwritten {
  readonly #retry: () => void;
  readonly #limits: UnwrittenLimits;
  readonly #writes = new Map<string, Write>();
  #bytes = 0;
  /** How many of them are to come first. */
  #first = 0;
  #health: StoreHealth = { state: "open" };
  #timer: NodeJS.Timeout | undefined;
  #retryMs = firstRetryMs;

  /** `retry` is called again and again, as long as the store fails. */
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

  /** Whether new work is to be refused, so that there is room for what becomes of that which exists. */
  get isCrowded(): boolean {
    const { maxUnwritten, maxUnwrittenBytes } = this.#limits;
    return this.#writes.size * 2 >= maxUnwritten || this.#bytes * 2 >= maxUnwrittenBytes;
  }

  /** Whether something must be made again before anything newer is written. */
  get hasFirst(): boolean {
    return this.#first > 0;
  }

  /** What is to be made again next: as far as the newest that comes first, else all. */
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

  /** Rejects writes with `store_failed`, and keeps those that have a key; where there is no room, with `overloaded`. */
  refuse(writes: readonly Write[], cause?: unknown): void {
    const why = this.#health.state === "failing" ? this.#health.why : "";
    const error = new WireError(
      "store_failed",
      `The store could not be written (${why}); nothing was accepted.`,
      { retryAfterMs: Math.max(1_000, this.#retryMs) },
      { cause },
    );
    for (const write of writes) {
      const isKept = write.key === undefined || this.#keep(write.key, write);
      write.done.reject(isKept ? error : tooMuchWaits());
    }
  }

  /** Something newer than all that is here was written for a key. */
  written(key: string): void {
    this.#delete(key);
  }

  /** These were made again, or never can be. What is newer stays. */
  forget(writes: readonly Write[]): void {
    for (const write of writes) {
      if (write.key !== undefined && this.#writes.get(write.key) === write) this.#delete(write.key);
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

  /** Gives whether there was room: for the newest of a key that is here there always is. */
  #keep(key: string, write: Write): boolean {
    const { maxUnwritten, maxUnwrittenBytes } = this.#limits;
    const isFull = this.#writes.size >= maxUnwritten || this.#bytes + write.bytes > maxUnwrittenBytes;
    const former = this.#writes.get(key);
    if (isFull && former === undefined) return false;
    // What takes its place follows all that it had to follow.
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

/** Why a write is not taken although the store may be well. */
export function tooMuchWaits(): WireError {
  return new WireError("overloaded", "Too much waits for the disk; nothing was accepted.", { retryAfterMs: 1_000 });
}
