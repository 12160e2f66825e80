import { outcomeOf } from "./outcome.ts";
import type { Page } from "./page.ts";

interface RereadingOptions {
  readonly page: Page;
  /** Reads it. After a rejection it is outdated, until the next change. */
  readonly read: () => Promise<unknown>;
  /** Whether it is being read in another way, after which {@link Rereading.resume} is called. Default: never. */
  readonly isHeld?: () => boolean;
}

/** Reads something again after each change, one time at a time; a hidden page does so when it is shown. */
export class Rereading {
  readonly #options: RereadingOptions;
  #isOutdated = false;
  #isReading = false;
  #isClosed = false;

  constructor(options: RereadingOptions) {
    this.#options = options;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** It has changed. */
  changed(): void {
    this.#isOutdated = true;
    this.resume();
  }

  /** Reads what has changed, unless the page is hidden. */
  resume(): void {
    const { page, isHeld } = this.#options;
    if (!this.#isOutdated || this.#isReading || this.#isClosed || page.isHidden || isHeld?.() === true) return;
    void this.#readAll();
  }

  /** Reads when the page is shown, until the returned function is called. */
  watch(): () => void {
    return this.#options.page.onVisibility(() => this.resume());
  }

  close(): void {
    this.#isClosed = true;
  }

  async #readAll(): Promise<void> {
    this.#isReading = true;
    while (this.#isOutdated && !this.#isClosed) {
      this.#isOutdated = false;
      const outcome = await outcomeOf(this.#options.read);
      if (outcome.kind === "done") continue;
      this.#isOutdated = true;
      break;
    }
    this.#isReading = false;
  }
}
