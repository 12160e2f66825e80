import type { Write } from "./unwritten.ts";

/** Beyond this nothing more waits for the disk, but for changes of what exists already: the newest of each key. */
const maxQueuedBytes = 32 * 1024 * 1024;

/** Writes that wait for their transaction, in order. */
export class WriteQueue {
  /** Parts of a transaction that a statement has spoilt, each to be tried as one of its own. They go first. */
  readonly #parts: (readonly Write[])[] = [];
  #batch = new Set<Write>();
  #keyed = new Map<string, Write>();
  #newest: Write | undefined;
  #bytes = 0;

  get newest(): Write | undefined {
    return this.#newest ?? this.#parts.at(-1)?.at(-1);
  }

  get hasParts(): boolean {
    return this.#parts.length > 0;
  }

  /** Whether there is room for so many bytes. One alone may be larger than the bound. */
  hasRoom(bytes: number): boolean {
    return this.#batch.size === 0 || this.#bytes + bytes <= maxQueuedBytes;
  }

  add(write: Write): void {
    this.#batch.add(write);
    this.#bytes += write.bytes;
    this.#newest = write;
    if (write.key !== undefined) this.#keyed.set(write.key, write);
  }

  /** Takes the place of what has the same key: that is settled as this one. */
  supersede(write: Write): void {
    const former = write.key === undefined ? undefined : this.#keyed.get(write.key);
    if (former !== undefined) {
      this.#batch.delete(former);
      this.#bytes -= former.bytes;
      write.done.promise.then(former.done.resolve, former.done.reject);
    }
    this.add(write);
  }

  /** The next transaction: a part of one that was spoilt, else all that waits. */
  take(): readonly Write[] {
    const part = this.#parts.shift();
    if (part !== undefined) return part;
    const batch = [...this.#batch];
    this.#batch = new Set();
    this.#keyed = new Map();
    this.#newest = undefined;
    this.#bytes = 0;
    return batch;
  }

  /** Of a transaction of several writes one was wrong: its halves are tried, in order, before anything else. */
  split(batch: readonly Write[]): void {
    const half = batch.length >> 1;
    this.#parts.unshift(batch.slice(0, half), batch.slice(half));
  }
}
