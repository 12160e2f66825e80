import type { Delivery } from "../../protocol/delivery.ts";
import { attributionOf, changedBy } from "../core/attribution.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { OwedNotification } from "../store/children.ts";

export interface DeliveryNotifierOptions {
  /** Requests a sync at the end of this turn of the event loop. */
  readonly commitSoon: () => void;
  /** Writes and syncs now; blocks the event loop. */
  readonly flush: () => void;
  readonly tell: (delivery: Delivery) => void;
}

interface PendingChange {
  readonly delivery: Delivery;
  isStored: boolean;
  told?: Deferred<void>;
}

/**
 * Reports changes in order, and only once they are on disk, so that a later daemon never contradicts them; if the
 * store fails, once that is known. The effects of a request on a delivery are stored at the end of the turn of the
 * event loop, with everything before them, because the transcript does not record requests. Other steps wait a moment
 * for another commit.
 */
export class DeliveryNotifier {
  readonly #options: DeliveryNotifierOptions;
  readonly #untold: PendingChange[] = [];
  /** Number of unreported changes for each delivery. */
  readonly #counts = new Map<string, number>();

  constructor(options: DeliveryNotifierOptions) {
    this.#options = options;
  }

  /** Records a change. `written` settles when it is on disk, or failed. */
  changed(delivery: Delivery, written: Promise<void>): void {
    const pending: PendingChange = { delivery, isStored: false };
    this.#untold.push(pending);
    this.#counts.set(delivery.deliveryId, (this.#counts.get(delivery.deliveryId) ?? 0) + 1);
    if (isUrgent(delivery)) this.#options.commitSoon();
    const stored = (): void => {
      pending.isStored = true;
      this.#tell();
    };
    written.then(stored, stored);
  }

  /** The changes that are not reported yet, oldest first. */
  get unreported(): readonly Delivery[] {
    return this.#untold.map(({ delivery }) => delivery);
  }

  /** Whether the newest change of a delivery is unreported. */
  isUnreported(deliveryId: string): boolean {
    return this.#counts.has(deliveryId);
  }

  /** Resolves when all changes so far were reported; with an id, those of this delivery only. */
  async told(deliveryId?: string): Promise<void> {
    if (deliveryId !== undefined && !this.isUnreported(deliveryId)) return;
    const last = this.#untold.findLast(
      ({ delivery }) => deliveryId === undefined || delivery.deliveryId === deliveryId,
    );
    if (last === undefined) return;
    this.#options.commitSoon();
    last.told ??= deferred();
    await last.told.promise;
  }

  /** Stores and reports the remaining changes now. */
  close(): void {
    this.#options.flush();
    for (const pending of this.#untold) pending.isStored = true;
    this.#tell();
  }

  #tell(): void {
    while (this.#untold[0]?.isStored === true) {
      const { delivery, told } = this.#untold.shift() as PendingChange;
      const left = (this.#counts.get(delivery.deliveryId) ?? 0) - 1;
      if (left > 0) this.#counts.set(delivery.deliveryId, left);
      else this.#counts.delete(delivery.deliveryId);
      this.#options.tell(delivery);
      told?.resolve();
    }
  }
}

/** What clients are told of a changed delivery. */
export function deliveryUpdated(delivery: Delivery): OwedNotification {
  return { method: "delivery/updated", params: { ...attributionOf(changedBy(delivery)), delivery } };
}

function isUrgent({ state }: Delivery): boolean {
  return state === "prepared" || state === "delivered" || state === "answered";
}
