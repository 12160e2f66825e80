import { isTerminal } from "../../protocol/delivery-progress.ts";
import type { HeldPush } from "../../protocol/link.ts";
import type { MarkedEntry } from "./branch.ts";
import { advance, type DeliveryEvent, type DeliveryProgress, heldProgress } from "./progress.ts";

export type Watcher = (progress: DeliveryProgress) => void;

/** A delivery and its watchers. */
export interface TrackedDelivery {
  progress: DeliveryProgress;
  /** Detects a reused id. `undefined` if the daemon has the original push. */
  readonly fingerprint: string | undefined;
  readonly watchers: Set<Watcher>;
}

/** Number of ended deliveries whose progress is kept. */
const maxEnded = 1_000;

/**
 * Tracks the progress of each delivery of this pi and notifies watchers. The map outlives this object because pi
 * re-creates modules; so waits survive a reload.
 */
export class DeliveryTracker {
  readonly #tracked: Map<string, TrackedDelivery>;
  readonly #fault: (where: string, thrown: unknown) => void;

  constructor(tracked: Map<string, TrackedDelivery>, fault: (where: string, thrown: unknown) => void) {
    this.#tracked = tracked;
    this.#fault = fault;
  }

  /** Number of open deliveries. */
  get open(): number {
    let open = 0;
    for (const { progress } of this.#tracked.values()) if (!isTerminal(progress)) open += 1;
    return open;
  }

  get(deliveryId: string): TrackedDelivery | undefined {
    return this.#tracked.get(deliveryId);
  }

  /** Records a held push. Has no effect if the push is already known. */
  held({ deliveryId, deliverAs }: Pick<HeldPush, "deliveryId" | "deliverAs">, fingerprint?: string): void {
    if (this.#tracked.has(deliveryId)) return;
    this.#tracked.set(deliveryId, {
      progress: heldProgress(deliveryId, deliverAs),
      fingerprint,
      watchers: new Set(),
    });
  }

  /** Records a push of an earlier process that is in the transcript. */
  foundInTranscript({ deliveryId }: MarkedEntry): void {
    this.held({ deliveryId, deliverAs: "steer" });
    this.apply({ kind: "inserted", deliveryIds: [deliveryId] });
  }

  apply(what: DeliveryEvent): void {
    for (const tracked of [...this.#tracked.values()]) {
      const next = advance(tracked.progress, what);
      if (next === tracked.progress) continue;
      tracked.progress = next;
      for (const watcher of [...tracked.watchers]) this.#notify(watcher, next);
    }
    if (this.#tracked.size > maxEnded) this.#forgetEnded();
  }

  /**
   * Calls `watcher` at each change until the returned function is called. Returns `undefined` for an unknown delivery.
   */
  watch(deliveryId: string, watcher: Watcher): (() => void) | undefined {
    const watchers = this.#tracked.get(deliveryId)?.watchers;
    if (watchers === undefined) return undefined;
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }

  #notify(watcher: Watcher, progress: DeliveryProgress): void {
    try {
      watcher(progress);
    } catch (thrown) {
      this.#fault("watcher", thrown);
    }
  }

  #forgetEnded(): void {
    const ended = [...this.#tracked].filter(([, { progress }]) => isTerminal(progress));
    for (const [id] of ended.slice(0, Math.max(0, ended.length - maxEnded))) this.#tracked.delete(id);
  }
}
