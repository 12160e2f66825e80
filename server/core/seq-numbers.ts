/** Stores reservations, so that no number is used twice across daemons. */
export interface SeqReserve {
  /** The highest number that may have been used. */
  readonly reserved: number;
  /** Records that numbers up to `upTo` may be used. Resolves when that is on disk. */
  reserve(upTo: number): Promise<void>;
  /** Writes and syncs now; returns whether numbers up to `upTo` are reserved. */
  flush(upTo: number): boolean;
}

const block = 65_536;

/** A number above all that any log has used before a time in Unix milliseconds. */
function seqAt(ms: number): number {
  return ms * 1_000;
}

/** Far more than one record of pi leads to. */
const margin = 1_024;

/** While reservations fail, they are retried after this many numbers. */
const retryAfter = 1_024;

/**
 * The numbers of a session's log. They only grow, also across daemons: blocks are reserved on disk before their
 * numbers are used, and a new daemon begins after the last block.
 * If reservations fail (the store fails), numbers continue from the time in Unix microseconds, which no log outruns.
 * A daemon after a failed store begins far below these. It recognises a cursor among them as foreign, because it is
 * above its head; none of them is ever used again.
 */
export class SeqNumbers {
  readonly #store: SeqReserve;
  readonly #now: () => number;
  #last: number;
  /** The highest requested reservation. */
  #reserved: number;
  /** The highest reservation on disk. */
  #durable: number;
  /** Whether the newest reservation failed. */
  #hasFailed = false;
  /** Whether unreserved numbers are in use. */
  #isUnreserved = false;
  #nextTry = 0;
  /** Counts releases: a reservation before a release does not show the state on disk after it. */
  #releases = 0;

  /** `now`, in Unix milliseconds, is for tests. */
  constructor(store: SeqReserve, now: () => number = Date.now) {
    this.#store = store;
    this.#now = now;
    this.#last = store.reserved;
    this.#reserved = store.reserved;
    this.#durable = store.reserved;
  }

  /** The newest number; before the first one, its predecessor. */
  get last(): number {
    return this.#last;
  }

  /** The next number; a far greater one if it cannot be reserved. */
  next(): number {
    const next = this.#last + 1;
    if (next > this.#reserved - block / 2) this.#reserveMore(next);
    if (next <= this.#durable) this.#last = next;
    else if (this.#isUnreserved && next < this.#nextTry) this.#last = next;
    else this.#last = this.#behindReserved(next);
    return this.#last;
  }

  /**
   * Has numbers for one record on disk before it is handled: a reservation in the middle of it would store a part of its
   * changes.
   */
  prepare(): void {
    const upTo = this.#last + margin;
    if (upTo <= this.#durable || this.#isUnreserved) return;
    if (upTo > this.#reserved - block / 2) this.#reserveMore(this.#last + 1);
    if (this.#store.flush(this.#reserved)) this.#durable = this.#reserved;
  }

  /** Continues after a reserved number that the log has already. */
  moveTo(seq: number): void {
    this.#last = seq;
  }

  /** Returns unused reserved numbers, so that the next daemon continues without a gap. */
  async release(): Promise<void> {
    const { last } = this;
    if (this.#isUnreserved || last === this.#reserved) return;
    // Later numbers are reserved again.
    this.#releases += 1;
    this.#reserved = last;
    this.#durable = last;
    // If that fails, the higher number stays on disk, which is equally safe; the store has logged the error.
    await this.#store.reserve(last).catch(() => {});
  }

  #behindReserved(next: number): number {
    if (next > this.#reserved || this.#isUnreserved || this.#hasFailed) this.#reserveMore(next);
    if (this.#store.flush(this.#reserved)) {
      this.#durable = this.#reserved;
      this.#isUnreserved = false;
      return next;
    }
    this.#nextTry = next + retryAfter;
    if (this.#isUnreserved) return next;
    this.#isUnreserved = true;
    const jumped = Math.max(next, seqAt(this.#now()));
    this.#nextTry = jumped + retryAfter;
    return jumped;
  }

  #reserveMore(next: number): void {
    const upTo = Math.max(this.#reserved, next - 1 + block);
    const releases = this.#releases;
    this.#reserved = upTo;
    this.#hasFailed = false;
    this.#store.reserve(upTo).then(
      () => {
        if (this.#releases !== releases) return;
        this.#durable = Math.max(this.#durable, upTo);
        if (this.#last <= this.#durable) this.#isUnreserved = false;
      },
      // The store has logged the error. The next unreserved number retries.
      () => {
        if (this.#reserved === upTo) this.#hasFailed = true;
      },
    );
  }
}
