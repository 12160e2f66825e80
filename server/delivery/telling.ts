import type { Delivery } from "../../protocol/delivery.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";

export interface TellingOptions {
  /** Requests a sync at the end of this turn of the event loop. */
  readonly hurry: () => void;
  /** Writes and syncs now; blocks the event loop. */
  readonly flush: () => void;
  readonly tell: (delivery: Delivery) => void;
}

interface Untold {
  readonly delivery: Delivery;
  isStored: boolean;
  told?: Deferred<void>;
}

/**
 * Reports changes in order, and only once they are on disk, so that a later daemon never contradicts them; if the
 * store fails, once that is known. The effects of a request on a delivery are stored at the end of the turn of the
 * event loop, with everything before them, because the transcript does not record requests. Other steps wait a moment
 * and share a sync.
 */
export class Telling {
  readonly #options: TellingOptions;
  readonly #untold: Untold[] = [];
  /** Number of unreported changes for each delivery. */
  readonly #counts = new Map<string, number>();

  constructor(options: TellingOptions) {
    this.#options = options;
  }

  /** Records a change. `written` settles when it is on disk, or failed. */
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

  /** Whether the newest change of a delivery is unreported. */
  isUntold(deliveryId: string): boolean {
    return this.#counts.has(deliveryId);
  }

  /** Resolves when all changes so far were reported; with an id, those of this delivery only. */
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

  /** Stores and reports the remaining changes now. */
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
