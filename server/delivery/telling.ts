import type { Delivery } from "../../protocol/delivery.ts";

export interface TellingOptions {
  /** Brings to disk, now, what was written. */
  readonly flush: () => void;
  readonly tell: (delivery: Delivery) => void;
}

/** How long a step that settles nothing waits for others, to share their sync. */
const maxDelayMs = 2;

/**
 * Tells of changes only once they are on disk, so that no later daemon says otherwise. That a delivery has settled, or is
 * in a request, is synced and told at once, with all that came before it: of requests the transcript says nothing. Other
 * steps wait a moment and share one sync.
 */
export class Telling {
  readonly #options: TellingOptions;
  #untold: Delivery[] = [];
  #timer: NodeJS.Timeout | undefined;
  /** How deep in calls of {@link together} this is. */
  #depth = 0;

  constructor(options: TellingOptions) {
    this.#options = options;
  }

  /** Notes a change. */
  changed(delivery: Delivery): void {
    this.together(() => this.#untold.push(delivery));
  }

  /** Whatever changes in here shares one sync. */
  together(change: () => void): void {
    this.#depth += 1;
    try {
      change();
    } finally {
      this.#depth -= 1;
      if (this.#depth === 0 && this.#untold.length > 0) {
        if (this.#untold.some(isUrgent)) this.flush();
        else this.#timer ??= setTimeout(() => this.flush(), maxDelayMs);
      }
    }
  }

  /** Syncs and tells now, in the order of the changes. Not from within {@link together}. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#depth > 0 || this.#untold.length === 0) return;
    const untold = this.#untold;
    this.#untold = [];
    this.#options.flush();
    for (const delivery of untold) this.#options.tell(delivery);
  }
}

function isUrgent({ state, settledAt }: Delivery): boolean {
  return state === "prepared" || settledAt !== undefined;
}
