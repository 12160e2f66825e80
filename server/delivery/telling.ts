import type { Delivery } from "../../protocol/delivery.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";

export interface TellingOptions {
  /** Has what was written brought to disk at the end of this turn of the event loop. */
  readonly hurry: () => void;
  /** Brings to disk, now, what was written, while everybody waits. */
  readonly flush: () => void;
  readonly tell: (delivery: Delivery) => void;
}

interface Untold {
  readonly delivery: Delivery;
  isStored: boolean;
  told?: Deferred<void>;
}

/**
 * Tells of changes only once they are on disk, in their order, so that no later daemon says otherwise; where the store
 * fails, once that is known. What a request has done to a delivery is stored at the end of the turn of the event loop, with
 * all that came before it: of requests the transcript says nothing. Other steps wait a moment and share a sync.
 */
export class Telling {
  readonly #options: TellingOptions;
  readonly #untold: Untold[] = [];
  /** How many changes of each delivery are among them. */
  readonly #counts = new Map<string, number>();

  constructor(options: TellingOptions) {
    this.#options = options;
  }

  /** Notes a change. `written` settles when it is on disk, or failed. */
  changed(delivery: Delivery, written: Promise<void>): void {
    const untold: Untold = { delivery, isStored: false };
    this.#untold.push(untold);
    this.#counts.set(delivery.deliveryId, (this.#counts.get(delivery.deliveryId) ?? 0) + 1);
    if (isUrgent(delivery)) this.#options.hurry();
    const stored = (): void => {
      untold.isStored = true;
      this.#tell();
    };
    written.then(stored, stored);
  }

  /** Whether nobody was told yet of the newest change of a delivery. */
  isUntold(deliveryId: string): boolean {
    return this.#counts.has(deliveryId);
  }

  /** Resolves when all changes until now were told; with an id, those of this delivery. Does not wait for others. */
  async told(deliveryId?: string): Promise<void> {
    if (deliveryId !== undefined && !this.isUntold(deliveryId)) return;
    const last = this.#untold.findLast(
      ({ delivery }) => deliveryId === undefined || delivery.deliveryId === deliveryId,
    );
    if (last === undefined) return;
    this.#options.hurry();
    last.told ??= deferred();
    await last.told.promise;
  }

  /** Brings to disk and tells now what is left. */
  close(): void {
    this.#options.flush();
    for (const untold of this.#untold) untold.isStored = true;
    this.#tell();
  }

  #tell(): void {
    while (this.#untold[0]?.isStored === true) {
      const { delivery, told } = this.#untold.shift() as Untold;
      const left = (this.#counts.get(delivery.deliveryId) ?? 0) - 1;
      if (left > 0) this.#counts.set(delivery.deliveryId, left);
      else this.#counts.delete(delivery.deliveryId);
      this.#options.tell(delivery);
      told?.resolve();
    }
  }
}

function isUrgent({ state }: Delivery): boolean {
  return state === "prepared" || state === "delivered" || state === "answered";
}
