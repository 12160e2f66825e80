import { LRUCache } from "lru-cache";
import type { Logger } from "pino";
import type { By } from "../../protocol/client-identity.ts";
import type { Delivery, DeliveryEffects, WaitUntil } from "../../protocol/delivery.ts";
import {
  type DeliveryInput,
  isBeforeInsertion,
  isInserted,
  startsRun,
  transition,
  withInsertedAt,
} from "../../protocol/delivery-machine.ts";
import { endsWait, isTerminal } from "../../protocol/delivery-progress.ts";
import { inputsOf } from "../../protocol/delivery-receipts.ts";
import { WireError } from "../../protocol/errors.ts";
import type { HeldPush } from "../../protocol/link-inward.ts";
import type { OutwardFrame } from "../../protocol/link-outward.ts";
import type { Params, Result } from "../../protocol/methods.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { DeliveryStore, StoredDelivery, StoredPush } from "../store/deliveries.ts";
import { acceptedPush, newDelivery, sizeOf } from "./accepted-push.ts";
import { DeliveryNotifier } from "./delivery-notifier.ts";
import { Expiry } from "./expiry.ts";
import { nothingOpen, type OpenOfSession, type Tracked, type Withdrawal } from "./tracked.ts";
import { Waiters } from "./waiters.ts";

export interface TrackerOptions {
  readonly store: DeliveryStore;
  /** Maximum size of one push as JSON. */
  readonly maxPushBytes: number;
  /** Maximum number and bytes of open pushes per session. */
  readonly maxOpenPerSession: number;
  readonly maxOpenBytesPerSession: number;
  /** Maximum number and bytes of settled deliveries in memory; older ones are read from the store. */
  readonly maxSettledInMemory: number;
  readonly maxSettledBytesInMemory: number;
  readonly log: Logger;
  /** Called at the start for sessions with open deliveries: whether the session is gone. Default: never. */
  readonly isGone?: (sessionId: string) => boolean;
  /** Whether the session's child lives on from a former daemon. Default: never. */
  readonly isLeft?: (sessionId: string) => boolean;
  /** Receives every change of every delivery, in order. */
  readonly onChange: (delivery: Delivery) => void;
  /** Called when a push expires and must be withdrawn; repeated until it is. */
  readonly onExpired?: (delivery: Delivery) => Promise<void> | void;
}

/** Tracks every push from its acceptance to its end. The store is authoritative; the helper's list is a copy. */
export class DeliveryTracker {
  readonly #options: TrackerOptions;
  readonly #open = new Map<string, Tracked>();
  readonly #bySession = new Map<string, OpenOfSession>();
  readonly #settled: LRUCache<string, StoredDelivery>;
  readonly #settling = new Map<string, StoredDelivery>();
  readonly #waiters = new Waiters();
  readonly #notifier: DeliveryNotifier;
  readonly #expiry: Expiry;
  readonly #deciding = new Map<string, Deferred<void>>();
  /** Sessions whose run waits for the answer to a dialog. */
  readonly #runsWaiting = new Set<string>();

  constructor(options: TrackerOptions) {
    this.#options = options;
    this.#notifier = new DeliveryNotifier({
      commitSoon: () => options.store.commitSoon(),
      flush: () => options.store.flush(),
      tell: (delivery) => {
        options.onChange(delivery);
        this.#waiters.notify(delivery);
      },
    });
    this.#expiry = new Expiry((delivery) => options.onExpired?.(delivery));
    this.#settled = new LRUCache({
      max: options.maxSettledInMemory,
      maxSize: options.maxSettledBytesInMemory,
      sizeCalculation: ({ push }) => sizeOf(push),
    });
    for (const { push, delivery } of options.store.open()) {
      this.#track({ push, delivery: withInsertedAt(delivery), stored: Promise.resolve(), isDurable: true });
    }
    const gone = [...this.#bySession.keys()].filter((sessionId) => options.isGone?.(sessionId) === true);
    for (const sessionId of gone) this.applyToAll(sessionId, { kind: "sessionGone", at: Date.now() });
    // The dialogs of a former daemon ended with it.
    const ended = [...this.#bySession.keys()].filter((sessionId) => options.isLeft?.(sessionId) !== true);
    for (const sessionId of ended) this.runWaits(sessionId, false);
  }

  /** Number of open deliveries by state. */
  openByState(): ReadonlyMap<string, number> {
    const counts = new Map<string, number>();
    for (const { delivery } of this.#open.values()) counts.set(delivery.state, (counts.get(delivery.state) ?? 0) + 1);
    return counts;
  }

  /**
   * Stores a push. Resolves when it is on disk. The same id with equal content returns the existing delivery; with
   * other content it is a `conflict`. Nothing is accepted when the store has failed.
   */
  async accept(params: Params<"delivery/push">, by?: By): Promise<Delivery> {
    const push = acceptedPush(params);
    const size = sizeOf(push);
    if (size > this.#options.maxPushBytes) {
      throw new WireError("too_large", `The push has ${size} bytes; the limit is ${this.#options.maxPushBytes}.`, {
        bytes: size,
        maxBytes: this.#options.maxPushBytes,
      });
    }
    // A new random id cannot exist yet.
    const existing = params.deliveryId === undefined ? undefined : this.#find(push.deliveryId);
    if (existing !== undefined) return await this.#again(existing, push, params.sessionId);
    this.#refuseOverload(params.sessionId, size);
    const delivery = newDelivery(params.sessionId, push, by);
    const stored = this.#options.store.add({ push, delivery });
    const tracked: Tracked = { push, delivery, stored, isDurable: false };
    this.#track(tracked);
    try {
      await stored;
    } catch (error) {
      this.#untrack(delivery);
      this.#waiters.fail(push.deliveryId, error);
      throw error;
    }
    tracked.isDurable = true;
    // A later change was reported already.
    if (tracked.delivery === delivery) this.#options.onChange(delivery);
    return await this.read(push.deliveryId);
  }

  /** Returns a retained delivery in its current state. */
  find(deliveryId: string): Delivery | undefined {
    return this.#find(deliveryId)?.delivery;
  }

  /** The current delivery, which may not be on disk yet. Throws `delivery_not_found`. */
  get(deliveryId: string): Delivery {
    const found = this.#find(deliveryId);
    if (found === undefined) throw notFound(deliveryId);
    return found.delivery;
  }

  /** What was pushed. Throws `delivery_not_found`. */
  pushed(deliveryId: string): StoredPush {
    const found = this.#find(deliveryId);
    if (found === undefined) throw notFound(deliveryId);
    return found.push;
  }

  /** The delivery as clients may see it: on disk up to now. Throws `delivery_not_found`. */
  async read(deliveryId: string): Promise<Delivery> {
    await this.stored([deliveryId]);
    while (this.#notifier.isUnreported(deliveryId)) await this.#notifier.told(deliveryId);
    return this.get(deliveryId);
  }

  /** The changes of a session's deliveries that are not reported yet. */
  unreported(sessionId: string): readonly Delivery[] {
    return this.#notifier.unreported.filter((delivery) => delivery.sessionId === sessionId);
  }

  /** Resolves when all changes so far are on disk and reported. */
  told(): Promise<void> {
    return this.#notifier.told();
  }

  /**
   * Returns the delivery once it has reached `until`, is parked, or can never reach it. Throws `deadline_exceeded`;
   * cancels nothing.
   */
  async wait(deliveryId: string, until: WaitUntil, timeoutMs: number, signal: AbortSignal): Promise<Delivery> {
    const open = this.#open.get(deliveryId);
    if (open?.isDurable === false) await open.stored;
    // No report may happen between this check and the wait.
    while (this.#notifier.isUnreported(deliveryId)) await this.#notifier.told(deliveryId);
    const delivery = this.get(deliveryId);
    if (timeoutMs === 0 || endsWait(delivery, until)) return delivery;
    return await this.#waiters.wait({ deliveryId, until, timeoutMs, signal, now: () => this.read(deliveryId) });
  }

  /**
   * All pushes of a session that may still reach the model, oldest first. The helper finds by itself which of them
   * are in the transcript, and watches those too.
   */
  toHold(sessionId: string): readonly HeldPush[] {
    return this.#of(sessionId)
      .filter(({ delivery, isDurable }) => isDurable && delivery.state !== "delivered")
      .map(({ push, delivery }) => (delivery.state === "parked" ? { ...push, parked: true } : push));
  }

  /** Whether a push waits only for a child: to be handed over, or to start a run. */
  wantsChild(sessionId: string): boolean {
    return this.wantsAgent(sessionId) || this.wantsCarrier(sessionId);
  }

  /** Whether a push waits only for the agent. */
  wantsAgent(sessionId: string): boolean {
    return this.#of(sessionId).some(
      ({ delivery: { state, deliverAs } }) => (state === "accepted" || state === "held") && deliverAs !== "nextTurn",
    );
  }

  /** Whether a push in the transcript wants a run and has been in no request. */
  wantsCarrier(sessionId: string): boolean {
    return this.#of(sessionId).some(({ delivery }) => delivery.deliverAs !== "nextTurn" && startsRun(delivery));
  }

  /**
   * The client of the push that starts a run now: of the pushes that want a run and were in no request, the last one.
   */
  starter(sessionId: string): By | undefined {
    const waiting = this.#of(sessionId).filter(
      ({ delivery: { state, deliverAs, triggerTurn, attempts } }) =>
        (state === "held" || state === "inserted") && deliverAs !== "nextTurn" && triggerTurn && attempts.length === 0,
    );
    return waiting.at(-1)?.delivery.history[0]?.by;
  }

  /** One page of deliveries of these sessions, newest first. Throws `delivery_not_found` for an unknown `after`. */
  async list(params: Params<"delivery/list">, of?: readonly string[]): Promise<Result<"delivery/list">> {
    const { sessionId, states, limit = 100, after } = params;
    const sessionIds = sessionId === undefined ? of : [sessionId].filter((id) => of?.includes(id) ?? true);
    await this.#notifier.told();
    await this.#options.store.written();
    const previous = after === undefined ? undefined : this.#options.store.get(after)?.delivery;
    // Memory may still have a delivery that the store has deleted, together with its position.
    if (after !== undefined && previous === undefined) throw notFound(after);
    const rows = this.#options.store.list({ sessionIds, states, limit: limit + 1, before: previous });
    // Memory has the changes that a failing store has not taken. Pending writes are reported when they are on disk.
    const page = rows.slice(0, limit);
    const newest = page.map((row) => {
      const { deliveryId } = row;
      if (this.#notifier.isUnreported(deliveryId)) return row;
      return (this.#open.get(deliveryId) ?? this.#settling.get(deliveryId))?.delivery ?? row;
    });
    const deliveries = newest.filter(({ state }) => states?.includes(state) ?? true);
    const last = page.at(-1);
    return { deliveries, ...(rows.length > limit && last !== undefined ? { next: last.deliveryId } : {}) };
  }

  /** The open deliveries of a session. */
  underWay(sessionId: string): readonly string[] {
    return this.#of(sessionId).map(({ push }) => push.deliveryId);
  }

  /** Returns the effects for deliveries. */
  async effects(deliveryIds: readonly string[]): Promise<DeliveryEffects> {
    const effects = deliveryIds.map(async (deliveryId) => {
      const { state, reason } = await this.read(deliveryId);
      return { deliveryId, state, ...(reason === undefined ? {} : { reason }) };
    });
    return await Promise.all(effects);
  }

  /** The pushes that a cleared queue removes. */
  toClear(sessionId: string): readonly string[] {
    return this.#of(sessionId)
      .filter(({ push }) => push.onClearQueue === "drop")
      .map(({ push }) => push.deliveryId);
  }

  /** Resolves when each is on disk or was rejected. */
  async stored(deliveryIds: readonly string[]): Promise<void> {
    await Promise.allSettled(deliveryIds.flatMap((id) => this.#open.get(id)?.stored ?? []));
  }

  /** The pushes that may still be withdrawn. */
  withdrawable(deliveryIds: readonly string[]): readonly string[] {
    return deliveryIds.filter((id) => {
      const tracked = this.#open.get(id);
      return tracked !== undefined && isBeforeInsertion(tracked.delivery);
    });
  }

  /** Records the withdrawal to apply if pi turns out not to have the pushes. */
  withdrawLater(deliveryIds: readonly string[], withdrawal: Withdrawal): void {
    for (const id of deliveryIds) {
      const tracked = this.#open.get(id);
      if (tracked !== undefined) tracked.withdrawal = withdrawal;
    }
  }

  /** Resolves when it is known whether a push that pi received is in the transcript. */
  leftHelper(deliveryId: string): Promise<void> {
    if (this.withdrawable([deliveryId]).length === 0) return Promise.resolve();
    const deciding = this.#deciding.get(deliveryId) ?? deferred<void>();
    this.#deciding.set(deliveryId, deciding);
    return deciding.promise;
  }

  /** Stores and reports remaining changes, and stops the timers. */
  close(): void {
    this.#notifier.close();
    this.#expiry.close();
  }

  /** Number of pushes that have not reached the model. */
  pending(sessionId: string): number {
    if (!this.#bySession.has(sessionId)) return 0;
    return this.#of(sessionId).filter(({ delivery }) => delivery.state !== "delivered").length;
  }

  /** Whether some are not in the transcript yet, so that the next prompt can take them along. */
  waitForPrompt(sessionId: string): boolean {
    return this.#of(sessionId).some(({ delivery }) => !isInserted(delivery));
  }

  /** Applies a frame of the helper. */
  receive(sessionId: string, frame: OutwardFrame): void {
    if (frame.kind === "dropped" && frame.reason === "released") this.#released(sessionId, frame.deliveryIds);
    const open = this.underWay(sessionId);
    for (const [deliveryId, input] of inputsOf(frame, open)) this.apply(sessionId, deliveryId, input);
  }

  /** Applies one input to one delivery of a session. Ids that are not open there are ignored. */
  apply(sessionId: string, deliveryId: string, input: DeliveryInput): void {
    const tracked = this.#open.get(deliveryId);
    if (tracked === undefined || tracked.delivery.sessionId !== sessionId) return;
    if (!this.#advance(tracked, input)) return;
    const isHeldNow = tracked.delivery.state === "held" && input.kind !== "dialog";
    if (isHeldNow && this.#runsWaiting.has(sessionId))
      this.#advance(tracked, { kind: "dialog", at: Date.now(), isOpen: true });
  }

  /** Returns whether the input changed the delivery. */
  #advance(tracked: Tracked, input: DeliveryInput): boolean {
    const { deliveryId } = tracked.push;
    const result = transition(tracked.delivery, input);
    if (result.kind === "ignored") return false;
    if (result.kind === "impossible") {
      this.#options.log.error(
        { deliveryId, state: tracked.delivery.state, input },
        "a receipt contradicts the delivery's state",
      );
      return false;
    }
    tracked.delivery = result.delivery;
    this.#expiry.watch(result.delivery);
    if (!isBeforeInsertion(result.delivery)) this.#decided(deliveryId);
    const over = isTerminal(result.delivery);
    const written = this.#options.store.update(result.delivery, over);
    if (over) {
      this.#untrack(result.delivery);
      const settled = { push: tracked.push, delivery: result.delivery };
      this.#settled.set(deliveryId, settled);
      // Until the commit, the store has the previous state. The store itself retries failed writes.
      this.#settling.set(deliveryId, settled);
      written.then(
        () => this.#settling.delete(deliveryId),
        () => {},
      );
    }
    this.#notifier.changed(result.delivery, written);
    return true;
  }

  /** Applies one input to all open deliveries of a session. */
  applyToAll(sessionId: string, input: DeliveryInput): void {
    for (const id of this.underWay(sessionId)) this.apply(sessionId, id, input);
  }

  /** The session's run starts or stops waiting for a dialog: its held pushes record that, including later ones. */
  runWaits(sessionId: string, isOpen: boolean): void {
    if (isOpen) this.#runsWaiting.add(sessionId);
    else this.#runsWaiting.delete(sessionId);
    this.applyToAll(sessionId, { kind: "dialog", at: Date.now(), isOpen });
  }

  #decided(deliveryId: string): void {
    this.#deciding.get(deliveryId)?.resolve();
    this.#deciding.delete(deliveryId);
  }

  #released(sessionId: string, deliveryIds: readonly string[]): void {
    for (const id of deliveryIds) {
      const withdrawal = this.#open.get(id)?.withdrawal;
      if (withdrawal !== undefined) this.apply(sessionId, id, withdrawal);
    }
  }

  #refuseOverload(sessionId: string, size: number): void {
    const { ids, bytes } = this.#bySession.get(sessionId) ?? nothingOpen;
    const { maxOpenPerSession, maxOpenBytesPerSession } = this.#options;
    if (ids.size < maxOpenPerSession && bytes + size <= maxOpenBytesPerSession) return;
    throw new WireError("overloaded", `The session has ${ids.size} open pushes, which is its limit.`, {
      retryAfterMs: 1_000,
      maxOpenPerSession,
      maxOpenBytesPerSession,
    });
  }

  #find(deliveryId: string): StoredDelivery | undefined {
    return (
      this.#open.get(deliveryId) ??
      this.#settling.get(deliveryId) ??
      this.#settled.get(deliveryId) ??
      this.#fromStore(deliveryId)
    );
  }

  #fromStore(deliveryId: string): StoredDelivery | undefined {
    const stored = this.#options.store.get(deliveryId);
    if (stored !== undefined) this.#settled.set(deliveryId, stored);
    return stored;
  }

  async #again(existing: StoredDelivery, push: StoredPush, sessionId: string): Promise<Delivery> {
    if (existing.delivery.sessionId !== sessionId || canonicalJson(existing.push) !== canonicalJson(push)) {
      throw new WireError("conflict", `The id "${push.deliveryId}" was used before for another push.`, {
        deliveryId: push.deliveryId,
      });
    }
    // The first call with this id may still be waiting for the disk.
    await this.#open.get(push.deliveryId)?.stored;
    return await this.read(push.deliveryId);
  }

  #of(sessionId: string): Tracked[] {
    const { ids } = this.#bySession.get(sessionId) ?? nothingOpen;
    return Array.from(ids, (id) => this.#open.get(id)).filter((tracked) => tracked !== undefined);
  }

  #track(tracked: Tracked): void {
    const { deliveryId, sessionId } = tracked.delivery;
    this.#open.set(deliveryId, tracked);
    this.#expiry.watch(tracked.delivery);
    const open = this.#bySession.get(sessionId) ?? { ids: new Set(), bytes: 0 };
    open.ids.add(deliveryId);
    open.bytes += sizeOf(tracked.push);
    this.#bySession.set(sessionId, open);
  }

  #untrack({ deliveryId, sessionId }: Delivery): void {
    const tracked = this.#open.get(deliveryId);
    this.#open.delete(deliveryId);
    this.#expiry.forget(deliveryId);
    const open = this.#bySession.get(sessionId);
    if (tracked === undefined || open === undefined) return;
    open.ids.delete(deliveryId);
    open.bytes -= sizeOf(tracked.push);
    if (open.ids.size === 0) this.#bySession.delete(sessionId);
  }
}

function notFound(deliveryId: string): WireError {
  return new WireError("delivery_not_found", `There is no delivery "${deliveryId}".`, { deliveryId });
}
