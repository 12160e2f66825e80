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
  /** The time from which ages are counted, in Unix milliseconds; the stores use the same. */
  readonly now: () => number;
  /** How long settled deliveries and lost prompts are kept. */
  readonly keepSettledDeliveriesMs: number;
  readonly keepLostPromptsMs: number;
  /** How long other prompts are kept, and how many. */
  readonly keepSettledPromptsMs: number;
  readonly maxSettledPrompts: number;
  /** How long the sessions' notifications are kept. */
  readonly keepEventsMs: number;
  /** Interval between two sweeps. */
  readonly everyMs: number;
  /** Maximum number of free pages returned in each sweep, to keep it short. */
  readonly shrinkPages: number;
  readonly log: Logger;
}

/** Deletes expired rows, at the start and periodically. */
export class Retention {
  readonly #options: RetentionOptions;
  readonly #timer: NodeJS.Timeout;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.sweep(), options.everyMs).unref();
    void this.sweep();
  }

  /** Never rejects: the next sweep retries. */
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
      log.warn({ err: error }, "cannot delete expired rows");
    }
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
