/** Where numbers are reserved, so that none is given twice across daemons. */
export interface SeqReserve {
  /** The highest number that may have been given. */
  readonly reserved: number;
  /** Notes that numbers up to `upTo` may be given. Resolves when that is on disk. */
  reserve(upTo: number): Promise<void>;
  /** Brings to disk, now, what was noted, and looks whether it is there: whether numbers are reserved up to `upTo`. */
  flush(upTo: number): boolean;
}

const block = 65_536;

/** A number above all that any log has given until a time in Unix milliseconds. */
function seqAt(ms: number): number {
  return ms * 1_000;
}

/** While nothing can be reserved, it is tried again after so many numbers. */
const retryAfter = 1_024;

/**
 * The numbers of a session's log. They only grow, also when a daemon is killed and another goes on: blocks are reserved on
 * disk before a number of them is given, and a new daemon begins behind the last block.
 *
 * Where nothing can be reserved (the store fails) numbers go on at the time in Unix microseconds, which no log outruns. A
 * daemon that comes behind a failed store begins far below these, and knows a cursor among them to be none of its own,
 * since it is above its head; none of them is ever given again for something else.
 */
export class SeqNumbers {
  readonly #store: SeqReserve;
  readonly #now: () => number;
  #last: number;
  /** The highest that a reservation was asked for. */
  #reserved: number;
  /** Up to here the reservation is on disk. */
  #durable: number;
  /** Whether the newest reservation did not get to disk. */
  #hasFailed = false;
  /** Whether numbers are given that are not reserved. */
  #isUnreserved = false;
  #nextTry = 0;
  /** Counts releases: what was reserved before one says nothing of what is on disk behind it. */
  #releases = 0;

  /** `now`, in Unix milliseconds, is for tests. */
  constructor(store: SeqReserve, now: () => number = Date.now) {
    this.#store = store;
    this.#now = now;
    this.#last = store.reserved;
    this.#reserved = store.reserved;
    this.#durable = store.reserved;
  }

  /** The newest number; where there was none, the one that the first goes behind. */
  get last(): number {
    return this.#last;
  }

  /** The number behind the last one, unless that cannot be reserved: then a far greater one. */
  next(): number {
    const next = this.#last + 1;
    if (next > this.#reserved - block / 2) this.#reserveMore(next);
    if (next <= this.#durable) this.#last = next;
    else if (this.#isUnreserved && next < this.#nextTry) this.#last = next;
    else this.#last = this.#behindReserved(next);
    return this.#last;
  }

  /** Gives back what was reserved and not given: the next daemon then goes on without a hole. */
  async release(): Promise<void> {
    const { last } = this;
    if (this.#isUnreserved || last === this.#reserved) return;
    // A number that is given from now on is reserved anew, behind this.
    this.#releases += 1;
    this.#reserved = last;
    this.#durable = last;
    // Where that fails the higher number stays on disk, which is as sound: the store has logged it.
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
      // The store has logged it. The next number that is not reserved tries again.
      () => {
        if (this.#reserved === upTo) this.#hasFailed = true;
      },
    );
  }
}
