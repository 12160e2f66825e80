import type { Delivery } from "../../protocol/delivery.ts";

export interface TellingOptions {
  /** Brings to disk, now, what was written. */
  readonly flush: () => void;
  readonly tell: (delivery: Delivery) => void;
}

/**
 * Tells that a delivery has settled, or is in a request, only once that is on disk, so that no later daemon says
 * otherwise: of requests the transcript says nothing. What changes together costs one sync together. The other steps are
 * told at once and written a moment later: a daemon that dies in between finds them again in the transcript.
 */
export class Telling {
  readonly #options: TellingOptions;
  #changed: Delivery[] | undefined;

  constructor(options: TellingOptions) {
    this.#options = options;
  }

  /** Notes a change, and tells of it at once unless more may change with it. */
  changed(delivery: Delivery): void {
    this.together(() => this.#changed?.push(delivery));
  }

  /** Whatever changes in here is told of behind it, in its order. */
  together(change: () => void): void {
    if (this.#changed !== undefined) {
      change();
      return;
    }
    const changed: Delivery[] = [];
    this.#changed = changed;
    try {
      change();
    } finally {
      this.#changed = undefined;
      if (changed.some(mustBeOnDisk)) this.#options.flush();
      for (const delivery of changed) this.#options.tell(delivery);
    }
  }
}

function mustBeOnDisk({ state, settledAt }: Delivery): boolean {
  return state === "prepared" || settledAt !== undefined;
}
