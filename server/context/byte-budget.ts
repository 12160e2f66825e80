import { WireError } from "../../protocol/errors.ts";

export interface ByteBudgetLimits {
  /** Limit for all documents in memory. A larger document is held alone. */
  readonly maxHeldBytes: number;
  /** Maximum number of waiting calls; further ones are `overloaded`. */
  readonly maxWaiting: number;
  /** How long a call waits before it is `overloaded`. */
  readonly waitMs: number;
  /** Up to this size a document never waits. It counts toward the limit. */
  readonly maxFreeBytes: number;
}

/**
 * The bytes that one call holds. It may take only once, because a call that holds bytes and waits for more can
 * deadlock.
 */
export interface Reservation {
  /** Call this before reading the bytes. Throws `overloaded`, and the signal's reason. */
  take(bytes: number, signal: AbortSignal): Promise<void>;
  /** Corrects the size to fewer bytes. */
  shrink(bytes: number): void;
  /** May be called more than once. */
  release(): void;
}

/** Reserves the bytes of one document before they are read. */
export type Admit = (bytes: number) => Promise<void>;

interface Waiting {
  readonly bytes: number;
  readonly begin: () => void;
}

/** Limits the bytes of documents that the daemon holds for all calls. Calls are served in order of arrival. */
export class ByteBudget {
  readonly #limits: ByteBudgetLimits;
  readonly #waiting: Waiting[] = [];
  #held = 0;

  constructor(limits: ByteBudgetLimits) {
    this.#limits = limits;
  }

  get held(): number {
    return this.#held;
  }

  open(): Reservation {
    let own = 0;
    let isOver = false;
    const become = (bytes: number): void => {
      this.#held += bytes - own;
      own = bytes;
      this.#next();
    };
    return {
      take: async (bytes, signal) => {
        signal.throwIfAborted();
        if (isOver || own > 0) throw new Error("A reservation can take only once.");
        if (bytes > this.#limits.maxFreeBytes && !(this.#waiting.length === 0 && this.#hasRoom(bytes))) {
          await this.#turn(bytes, signal);
        } else this.#held += bytes;
        own = bytes;
      },
      shrink: (bytes) => {
        if (bytes < own) become(bytes);
      },
      release: () => {
        isOver = true;
        become(0);
      },
    };
  }

  /** Releases when the job has ended. */
  async holding<T>(job: (reservation: Reservation) => Promise<T>): Promise<T> {
    const reservation = this.open();
    try {
      return await job(reservation);
    } finally {
      reservation.release();
    }
  }

  #hasRoom(bytes: number): boolean {
    return this.#held === 0 || this.#held + bytes <= this.#limits.maxHeldBytes;
  }

  /** Resolves when the bytes are reserved. */
  async #turn(bytes: number, signal: AbortSignal): Promise<void> {
    const { maxWaiting, waitMs } = this.#limits;
    if (this.#waiting.length >= maxWaiting) throw tooMany();
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const entry: Waiting = { bytes, begin: resolve };
    this.#waiting.push(entry);
    const leave = (why: unknown): void => {
      const at = this.#waiting.indexOf(entry);
      if (at === -1) return;
      this.#waiting.splice(at, 1);
      reject(why);
      this.#next();
    };
    const abandon = (): void => leave(signal.reason);
    const timer = setTimeout(() => leave(tooMany()), waitMs);
    signal.addEventListener("abort", abandon, { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abandon);
    }
  }

  #next(): void {
    for (let [first] = this.#waiting; first !== undefined && this.#hasRoom(first.bytes); [first] = this.#waiting) {
      this.#waiting.shift();
      this.#held += first.bytes;
      first.begin();
    }
  }
}

function tooMany(): WireError {
  return new WireError("overloaded", "Too many contexts are being prepared.", { retryAfterMs: 1_000 });
}
