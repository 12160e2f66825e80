import { isTerminal } from "../../protocol/delivery-progress.ts";
import type { HeldPush } from "../../protocol/link.ts";
import type { MarkedEntry } from "./branch.ts";
import { advance, type DeliveryProgress, heldProgress, type Occurrence } from "./progress.ts";

export type Watcher = (progress: DeliveryProgress) => void;

/** One delivery and who waits for it. */
export interface Tracked {
  progress: DeliveryProgress;
  /** Tells whether the same id is used for something else. `undefined` where the daemon has the original. */
  readonly fingerprint: string | undefined;
  readonly watchers: Set<Watcher>;
}

/** Those that have ended can be asked for as long as there are no more of them. */
const maxEnded = 1_000;

/**
 * How far each delivery of this pi has come, by what the engine says, and those who wait for it. The map outlives this
 * object, so that a wait survives a reload: pi re-creates modules.
 */
export class DeliveryTracker {
  readonly #tracked: Map<string, Tracked>;
  readonly #fault: (where: string, thrown: unknown) => void;

  constructor(tracked: Map<string, Tracked>, fault: (where: string, thrown: unknown) => void) {
    this.#tracked = tracked;
    this.#fault = fault;
  }

  /** How many are on their way. */
  get open(): number {
    let open = 0;
    for (const { progress } of this.#tracked.values()) if (!isTerminal(progress)) open += 1;
    return open;
  }

  get(deliveryId: string): Tracked | undefined {
    return this.#tracked.get(deliveryId);
  }

  /** A push is held from now on. One that is known already stays as it is. */
  held({ deliveryId, deliverAs }: Pick<HeldPush, "deliveryId" | "deliverAs">, fingerprint?: string): void {
    if (this.#tracked.has(deliveryId)) return;
    this.#tracked.set(deliveryId, {
      progress: heldProgress(deliveryId, deliverAs),
      fingerprint,
      watchers: new Set(),
    });
  }

  /** A push of an earlier process stands in the transcript. */
  standing({ deliveryId }: MarkedEntry): void {
    this.held({ deliveryId, deliverAs: "steer" });
    this.hear({ kind: "inserted", deliveryIds: [deliveryId] });
  }

  hear(what: Occurrence): void {
    for (const tracked of [...this.#tracked.values()]) {
      const next = advance(tracked.progress, what);
      if (next === tracked.progress) continue;
      tracked.progress = next;
      for (const watcher of [...tracked.watchers]) this.#tell(watcher, next);
    }
    if (this.#tracked.size > maxEnded) this.#forgetEnded();
  }

  /** Calls `watcher` at each change until the returned function is called. `undefined`: there is no such delivery. */
  watch(deliveryId: string, watcher: Watcher): (() => void) | undefined {
    const watchers = this.#tracked.get(deliveryId)?.watchers;
    if (watchers === undefined) return undefined;
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }

  #tell(watcher: Watcher, progress: DeliveryProgress): void {
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
