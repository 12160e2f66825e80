import type { Write } from "./unwritten.ts";

/** Limits of the queue. Beyond the bytes, updates of existing rows are still accepted: the newest of each key. */
export interface QueueLimits {
  readonly maxQueued: number;
  readonly maxQueuedBytes: number;
}

/** Writes that wait for their transaction, in order. */
export class WriteQueue {
  readonly #limits: QueueLimits;
  /** Parts of a transaction with an invalid statement, each to be tried on its own. They go first. */
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

  /** Whether there is room for these bytes. A single write may be larger than the limit. */
  hasRoom(bytes: number): boolean {
    return this.#batch.size === 0 || (!this.isFull && this.#bytes + bytes <= this.#limits.maxQueuedBytes);
  }

  /** Whether a further write must replace a queued one. */
  get isFull(): boolean {
    return this.#batch.size >= this.#limits.maxQueued;
  }

  /** Whether a change with this key is queued. */
  has(key: string): boolean {
    return this.#keyed.has(key);
  }

  add(write: Write): void {
    this.#batch.add(write);
    this.#bytes += write.bytes;
    this.#newest = write;
    if (write.key !== undefined) this.#keyed.set(write.key, write);
  }

  /** Replaces a queued write with the same key; both settle together, and are synced if one of them must be. */
  supersede(write: Write): void {
    const former = write.key === undefined ? undefined : this.#keyed.get(write.key);
    if (former !== undefined) {
      this.#batch.delete(former);
      this.#bytes -= former.bytes;
      write.done.promise.then(former.done.resolve, former.done.reject);
    }
    this.add(former?.isSynced === true ? { ...write, isSynced: true } : write);
  }

  /** The next transaction: a part of a split one, otherwise everything queued. */
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

  /** A write of this group that is already in a separate part. */
  inParts(group: string): Write | undefined {
    return this.#parts.flat().find((write) => write.group === group);
  }

  /**
   * Splits a transaction in which one write was invalid: its halves are tried in order, before anything else. A group
   * is not divided, and has the position of its last write. Returns whether it could be split.
   */
  split(batch: readonly Write[]): boolean {
    const units = unitsOf(batch);
    if (units.length < 2) return false;
    const half = units.length >> 1;
    this.#parts.unshift(units.slice(0, half).flat(), units.slice(half).flat());
    return true;
  }
}

/** The single writes and the groups. */
function unitsOf(batch: readonly Write[]): readonly (readonly Write[])[] {
  const last = new Map(batch.map((write) => [write.group, write]));
  const members = Map.groupBy(batch, ({ group }) => group);
  return batch.flatMap((write) => {
    if (write.group === undefined) return [[write]];
    return last.get(write.group) === write ? [members.get(write.group) ?? [write]] : [];
  });
}
