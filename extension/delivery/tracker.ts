import type { Reason } from "../../protocol/delivery.ts";
import { type DeliveryInput, transition } from "../../protocol/delivery-machine.ts";
import { isTerminal } from "../../protocol/delivery-progress.ts";
import { inputsOf } from "../../protocol/delivery-receipts.ts";
import type { HeldPush } from "../../protocol/link-inward.ts";
import type { OutwardFrame } from "../../protocol/link-outward.ts";
import type { OutwardBody } from "../link/outbound.ts";
import type { MarkedEntry } from "./branch.ts";
import { type DeliveryProgress, progressOf, type TrackedRecord } from "./progress.ts";

export type Watcher = (progress: DeliveryProgress) => void;

/** A delivery and its watchers. */
export interface TrackedDelivery {
  record: TrackedRecord;
  /** Detects a reused id. `undefined` if the daemon has the original push. */
  readonly fingerprint: string | undefined;
  readonly watchers: Set<Watcher>;
}

/** Number of ended deliveries whose progress is kept. */
const maxEnded = 1_000;
const droppedByAbort: Reason = { code: "abort", message: "The run was aborted, which drops this push by its policy." };

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
    for (const { record } of this.#tracked.values()) if (!isTerminal(record)) open += 1;
    return open;
  }

  get(deliveryId: string): TrackedDelivery | undefined {
    return this.#tracked.get(deliveryId);
  }

  progress(deliveryId: string): DeliveryProgress | undefined {
    const tracked = this.#tracked.get(deliveryId);
    return tracked && progressOf(tracked.record);
  }

  /** Records a held push. Has no effect if the push is already known. */
  held(push: Pick<HeldPush, "deliveryId" | "deliverAs" | "triggerTurn">, fingerprint?: string): void {
    const { deliveryId, deliverAs, triggerTurn } = push;
    if (this.#tracked.has(deliveryId)) return;
    const at = Date.now();
    const record: TrackedRecord = {
      deliveryId,
      deliverAs,
      triggerTurn,
      state: "held",
      attempts: [],
      history: [{ state: "held", at }],
      updatedAt: at,
    };
    this.#tracked.set(deliveryId, { record, fingerprint, watchers: new Set() });
  }

  /** Records a push of an earlier process that is in the transcript. */
  foundInTranscript({ deliveryId }: MarkedEntry): void {
    this.held({ deliveryId, deliverAs: "steer", triggerTurn: true });
    this.inserted([deliveryId]);
  }

  inserted(deliveryIds: readonly string[]): void {
    this.apply({ kind: "inserted", deliveryIds });
  }

  cancelled(deliveryIds: readonly string[]): void {
    for (const id of deliveryIds) this.#advance(id, { kind: "withdrawn", at: Date.now(), as: "cancelled" });
    this.#forgetEnded();
  }

  /** All deliveries end. */
  sessionLeft(code: "session_replaced" | "session_closed"): void {
    for (const id of [...this.#tracked.keys()]) this.#advance(id, { kind: "sessionLeft", at: Date.now(), code });
    this.#forgetEnded();
  }

  /** Applies a frame that reports to the daemon. */
  apply(body: OutwardBody): void {
    const frame = { ...body, at: Date.now() } as OutwardFrame;
    if (frame.kind === "dropped") this.#dropped(frame);
    else for (const [id, input] of inputsOf(frame, [...this.#tracked.keys()])) this.#advance(id, input);
    this.#forgetEnded();
  }

  /** The daemon words these ends by the withdrawal that it asked for, or by the push's policy. */
  #dropped({ deliveryIds, reason, at }: Extract<OutwardFrame, { kind: "dropped" }>): void {
    if (reason === "released") this.cancelled(deliveryIds);
    else for (const id of deliveryIds) this.#advance(id, { kind: "dropped", at, reason: droppedByAbort });
  }

  #advance(deliveryId: string, input: DeliveryInput): void {
    const tracked = this.#tracked.get(deliveryId);
    if (tracked === undefined) return;
    const result = transition(tracked.record, input);
    if (result.kind !== "changed") return;
    tracked.record = result.delivery;
    if (tracked.watchers.size === 0) return;
    const progress = progressOf(result.delivery);
    for (const watcher of [...tracked.watchers]) this.#notify(watcher, progress);
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
    if (this.#tracked.size <= maxEnded) return;
    const ended = [...this.#tracked].filter(([, { record }]) => isTerminal(record));
    for (const [id] of ended.slice(0, Math.max(0, ended.length - maxEnded))) this.#tracked.delete(id);
  }
}
