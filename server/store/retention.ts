import type { Logger } from "pino";
import type { Database } from "./database.ts";
import type { DeliveryStore } from "./deliveries.ts";
import type { EventStore } from "./events.ts";
import type { IdempotencyStore } from "./idempotency.ts";
import type { PromptStore } from "./prompts.ts";

export interface RetentionOptions {
  readonly database: Database;
  readonly deliveries: DeliveryStore;
  readonly prompts: PromptStore;
  readonly events: EventStore;
  readonly idempotency: IdempotencyStore;
  /** The time that ages are counted by, in Unix milliseconds; the stores have the same. */
  readonly now: () => number;
  /** How long settled deliveries and lost prompts are kept. */
  readonly keepSettledDeliveriesMs: number;
  readonly keepLostPromptsMs: number;
  /** How long other prompts are kept, and how many. */
  readonly keepSettledPromptsMs: number;
  readonly maxSettledPrompts: number;
  /** How long the sessions' notifications are kept. */
  readonly keepEventsMs: number;
  /** Between two looks. */
  readonly everyMs: number;
  /** At most so many free pages are given back at each look, so that nobody waits for long. */
  readonly shrinkPages: number;
  readonly log: Logger;
}

/** Forgets what has been kept for long enough: once at the start, and again and again. */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #timer: NodeJS.Timeout;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.sweep(), options.everyMs).unref();
    void this.sweep();
  }

  /** Never rejects: what could not be forgotten is tried at the next look. */
  async sweep(now: number = this.#options.now()): Promise<void> {
    const { database, deliveries, prompts, events, idempotency, log, ...options } = this.#options;
    try {
      await Promise.all([
        deliveries.expire(now - options.keepSettledDeliveriesMs),
        deliveries.limit(),
        prompts.expire(now - options.keepLostPromptsMs, now - options.keepSettledPromptsMs),
        prompts.limit(options.maxSettledPrompts),
        events.expire(now - options.keepEventsMs),
        idempotency.expire(now),
      ]);
      await database.shrink(options.shrinkPages);
    } catch (error) {
      log.warn({ err: error }, "what has been kept for long enough could not be forgotten");
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
