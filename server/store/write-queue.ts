import type { Write } from "./unwritten.ts";

/** What may wait for the disk. Over the bytes, changes of what exists already go on: the newest of each key. */
export interface QueueLimits {
  readonly maxQueued: number;
  readonly maxQueuedBytes: number;
}

/** Writes that wait for their transaction, in order. */
export class WriteQueue {
  readonly #limits: QueueLimits;
  /** Parts of a transaction that a statement has spoilt, each to be tried as one of its own. They go first. */
  readonly #parts: (readonly Write[])[] = [];
  #batch = new Set<Write>();
  #keyed = new Map<string, Write>();
  #newest: Write | undefined;
  #bytes = 0;

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  get newest(): Write | undefined {
    return this.#newest ?? this.#parts.at(-1)?.at(-1);
  }

  get hasParts(): boolean {
    return this.#parts.length > 0;
  }

  /** Whether there is room for so many bytes. One alone may be larger than the bound. */
  hasRoom(bytes: number): boolean {
    return this.#batch.size === 0 || (!this.isFull && this.#bytes + bytes <= this.#limits.maxQueuedBytes);
  }

  /** Whether no further write may wait, but in the place of another. */
  get isFull(): boolean {
    return this.#batch.size >= this.#limits.maxQueued;
  }

  /** Whether a change with this key waits. */
  has(key: string): boolean {
    return this.#keyed.has(key);
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

  /** One of a group that is in a part of its own already. */
  inParts(group: string): Write | undefined {
    return this.#parts.flat().find((write) => write.group === group);
  }

  /**
   * Of a transaction of several writes one was wrong: its halves are tried, in order, before anything else. A group is
   * never divided, and stands where its last write stood. Gives whether it could be split.
   */
  split(batch: readonly Write[]): boolean {
    const units = unitsOf(batch);
    if (units.length < 2) return false;
    const half = units.length >> 1;
    this.#parts.unshift(units.slice(0, half).flat(), units.slice(half).flat());
    return true;
  }
}

/** The writes that stand alone, and the groups. */
function unitsOf(batch: readonly Write[]): readonly (readonly Write[])[] {
  const last = new Map(batch.map((write) => [write.group, write]));
  const members = Map.groupBy(batch, ({ group }) => group);
  return batch.flatMap((write) => {
    if (write.group === undefined) return [[write]];
    return last.get(write.group) === write ? [members.get(write.group) ?? [write]] : [];
  });
}
