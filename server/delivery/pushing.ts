import type { Logger } from "pino";
import type { By } from "../../protocol/client-identity.ts";
import { WireError } from "../../protocol/errors.ts";
import type { CarryReply, HeldPush, HoldReply } from "../../protocol/link-inward.ts";
import type { SessionContext } from "../core/session-context.ts";
import { isChildOf, type SessionCore } from "../core/session-core.ts";
import type { Child } from "../pi/child.ts";
import type { FrameBody, LinkSendOptions } from "../pi/link.ts";
import { isCarryReply, isHoldReply } from "../pi/outward-frame.ts";
import type { Retry } from "./retry.ts";
import type { Withdrawal } from "./tracked.ts";
import type { DeliveryTracker } from "./tracker.ts";
import { type GivenPushes, Withdrawing } from "./withdrawing.ts";

/** Maximum size of one frame of pushes. A larger push gets a frame of its own. */
const maxHoldBytes = 8 * 1024 * 1024;

/** A pi without the helper does not get one by itself: after this many consecutive starts its pushes fail. */
const maxLinkFailures = 3;

/**
 * A loaded helper may come back: it does not answer while its session is replaced. After this many consecutive tries,
 * about 21 s, unacknowledged pushes fail.
 */
const maxDeafTries = 6;

export interface PushingOptions {
  readonly tracker: DeliveryTracker;
  /** Tries again later when pi cannot be reached. */
  readonly retry: Retry;
}

/**
 * Sends a session's accepted pushes to the helper inside its pi, which inserts each at its moment. A push that cannot
 * be sent now stays accepted in the store, and is sent to the next child.
 */
export class Pushing implements GivenPushes {
  readonly #core: SessionCore;
  readonly #tracker: DeliveryTracker;
  readonly #log: Logger;
  /** Pushes that the current child's helper may have. */
  #given = new Set<string>();
  /** Pushes that the helper has acknowledged. */
  #brought = new Set<string>();
  #givenTo: Child | undefined;
  /** The next hand-over, which includes later pushes. */
  #waiting: Promise<void> | undefined;
  /** Whether pushes wait for the outcome of a withdrawal before they are sent. */
  #isLeftOut = false;
  /** The transfer to the helper in progress. */
  #bringing: Promise<unknown> = Promise.resolve();
  /** Consecutive failures to reach the helper. */
  #linkFailures = 0;
  readonly #retry: Retry;
  readonly #withdrawing: Withdrawing;

  constructor({ events, log }: SessionContext, core: SessionCore, { tracker, retry }: PushingOptions) {
    this.#core = core;
    this.#tracker = tracker;
    this.#log = log;
    this.#retry = retry;
    this.#withdrawing = new Withdrawing(core, tracker, this);
    events.on("childStarted", ({ child, purpose, waitUntil }) => {
      waitUntil(this.#resume(child, purpose === "prompt" ? "later" : "now"));
    });
  }

  /** Whether a push waits only for a child: to be handed over, or to start a run. */
  get wantsChild(): boolean {
    return this.#tracker.wantsChild(this.#core.sessionId);
  }

  /** Sends new pushes and has them handed over. Never rejects: the deliveries have the outcome. */
  handOver(): Promise<void> {
    this.#waiting ??= this.#handOver();
    return this.#waiting;
  }

  /** The child's helper has lost its list, or came from another session: sends all pushes again. Never rejects. */
  async resume(child: Child): Promise<void> {
    try {
      await this.#core.scope.run(() => this.#resume(child, "now"));
    } catch (error) {
      this.#log.warn({ err: error }, "cannot send held pushes to the helper");
    }
  }

  /** Before a prompt: has the helper append pushes that wait for one. A failed push does not refuse the prompt. */
  async beforePrompt(child: Child): Promise<void> {
    if (!this.#tracker.waitForPrompt(this.#core.sessionId)) return;
    try {
      await this.#bring(child, "later");
      await this.#send<HoldReply>(child, { kind: "beforePrompt" }, { onReply: (reply) => this.#take(reply) });
    } catch (error) {
      if (child.state.kind !== "ready" || !isChildOf(this.#core, child)) throw error;
      this.#log.error({ err: error }, "cannot insert pushes before a prompt");
    }
  }

  /** Withdraws pushes that are not in the transcript. Resolves when each is decided. */
  async withdraw(deliveryIds: readonly string[], withdrawal: Withdrawal): Promise<void> {
    try {
      await this.#withdrawing.withdraw(deliveryIds, withdrawal);
    } finally {
      // Pushes that were not withdrawn, and later ones, may have been omitted from the last transfer.
      const { kind } = this.#core.state;
      if (this.#isLeftOut && (kind === "idle" || kind === "running" || this.wantsChild)) void this.handOver();
    }
  }

  /**
   * Withdraws pushes with the policy `clear` when the queue is cleared. pi's own queue holds none. Never rejects,
   * because the user texts cleared with them must not be lost; the deliveries have the outcome.
   */
  async clear(): Promise<void> {
    const reason = { code: "clear_queue", message: "The queue was cleared, including this push." } as const;
    const withdrawal = { kind: "withdrawn", at: Date.now(), as: "dropped", reason } as const;
    try {
      await this.withdraw(this.#tracker.toClear(this.#core.sessionId), withdrawal);
    } catch (error) {
      this.#log.error({ err: error }, "cannot withdraw pushes with the cleared queue");
    }
  }

  /** Withdraws an expired push. Never rejects. */
  async expire(deliveryId: string): Promise<void> {
    const reason = {
      code: "expired",
      message: "It was not inserted within the time that its client set.",
    } as const;
    try {
      await this.withdraw([deliveryId], { kind: "withdrawn", at: Date.now(), as: "expired", reason });
    } catch (error) {
      this.#log.error({ err: error, deliveryId }, "cannot withdraw an expired push");
    }
  }

  /** Requests a run that carries a parked push. Does nothing if the caller has gone before its turn. */
  async resend(deliveryId: string, signal?: AbortSignal, by?: By): Promise<void> {
    const isParked = (): boolean => this.#tracker.get(deliveryId).state === "parked";
    await this.#core.scope.run(async () => {
      // An earlier call may have sent it; another carrier would start a run with nothing to carry.
      if (!isParked()) return;
      const child = await this.#core.awake();
      if (child.retires !== undefined) {
        const why = `The push cannot be sent again yet: ${child.retires}, and it ends after its run.`;
        throw new WireError("session_busy", why, { retryAfterMs: 1_000 });
      }
      await this.#bring(child, "now");
      if (!isParked()) return;
      const { sessionId } = this.#core;
      const onSent = (): void => this.#tracker.apply(sessionId, deliveryId, { kind: "resent", at: Date.now(), by });
      await this.#sendCarrier(child, { deliveryId, onSent, by });
    }, signal);
  }

  isGiven(child: Child, deliveryId: string): boolean {
    if (this.#givenTo === child) return this.#given.has(deliveryId);
    // A former daemon gave it pushes, some of which this one does not know to be held.
    return child.restoredAt !== undefined;
  }

  async brought(): Promise<void> {
    await this.#bringing;
  }

  /** The helper ignores duplicates. */
  async #resume(child: Child, handOver: "now" | "later"): Promise<void> {
    this.#givenTo = undefined;
    await this.#bring(child, handOver);
    if (handOver === "now") await this.#carry(child);
  }

  async #handOver(): Promise<void> {
    // The turn may come immediately; this promise must be registered as waiting before that.
    await Promise.resolve();
    try {
      await this.#core.scope.run(async () => {
        this.#waiting = undefined;
        const child = await this.#core.awake();
        // They wait for the next one.
        if (child.retires !== undefined) return;
        await this.#bring(child, "now");
        await this.#carry(child);
      });
    } catch (error) {
      this.#waiting = undefined;
      const isExpected = error instanceof WireError && error.kind === "shutting_down";
      this.#log[isExpected ? "debug" : "warn"]({ err: error }, "pushes wait because pi cannot be reached");
      this.#postpone(error);
    }
  }

  /** Records in each push why it waits, and tries again later. After a crash that happens anyway. */
  #postpone(error: unknown): void {
    if (error instanceof WireError && error.kind === "shutting_down") return;
    if (error instanceof WireError && error.kind === "session_closed") {
      // A push accepted at the last moment is not ended with the others.
      if (this.#core.state.kind === "closed") {
        this.#tracker.applyToAll(this.#core.sessionId, { kind: "sessionClosed", at: Date.now() });
      }
      return;
    }
    if (error instanceof WireError && error.kind === "session_lost") {
      this.#tracker.applyToAll(this.#core.sessionId, { kind: "sessionLost", at: Date.now() });
      return;
    }
    const words = error instanceof Error ? error.message : String(error);
    const at = Date.now();
    const isUnlinked = error instanceof WireError && error.kind === "link_failed";
    // Only these retries count, however often new pushes cause a try between them.
    if (!isUnlinked) this.#linkFailures = 0;
    else if (!this.#retry.isDue) this.#linkFailures += 1;
    const { kind } = this.#core.state;
    if (this.#linkFailures >= (kind === "idle" || kind === "running" ? maxDeafTries : maxLinkFailures)) {
      this.#linkFailures = 0;
      const reason = { code: "link_failed", message: `The helper inside pi cannot be reached: ${words}` } as const;
      void this.#giveUp({ kind: "withdrawn", as: "failed", at, reason });
    }
    const reason = { code: "not_started", message: `The push waits because pi cannot be reached: ${words}` } as const;
    this.#tracker.applyToAll(this.#core.sessionId, { kind: "postponed", at, reason });
    if (!(error instanceof WireError && error.kind === "child_exited")) this.#retry.failed();
  }

  /** Fails pushes that neither the helper nor the transcript has. */
  async #giveUp(withdrawal: Withdrawal): Promise<void> {
    const all = this.#tracker.underWay(this.#core.sessionId);
    const { kind } = this.#core.state;
    try {
      if (kind !== "idle" && kind !== "running") await this.#withdrawing.withdrawWithoutChild(all, withdrawal);
      else {
        const unknown = all.filter((id) => !this.#brought.has(id));
        await this.#withdrawing.withdraw(unknown, withdrawal);
      }
    } catch (error) {
      this.#log.error({ err: error }, "cannot fail pushes that pi cannot receive");
    }
  }

  #bring(child: Child, handOver: "now" | "later"): Promise<void> {
    const bringing = this.#bringAll(child, handOver);
    this.#bringing = Promise.allSettled([this.#bringing, bringing]);
    return bringing;
  }

  async #bringAll(child: Child, handOver: "now" | "later"): Promise<void> {
    if (this.#givenTo !== child) {
      this.#givenTo = child;
      this.#given = new Set();
      this.#brought = new Set();
    }
    const brought = this.#brought;
    const pushes = this.#tracker.toHold(this.#core.sessionId);
    const missing = pushes.filter(({ deliveryId }) => !brought.has(deliveryId));
    const withdrawn = missing.findIndex(({ deliveryId }) => this.#withdrawing.isUnderWay(deliveryId));
    const fresh = withdrawn === -1 ? missing : missing.slice(0, withdrawn);
    this.#isLeftOut = withdrawn !== -1;
    // An empty frame tells the helper that pushes sent for a prompt need not wait any more.
    const groups = fresh.length === 0 && handOver === "now" && this.#given.size > 0 ? [[]] : grouped(fresh);
    // Register all of them before anything is awaited: from here on each is withdrawn through the helper, because a
    // former child may have written an unsent push, and a frame may have arrived although its send failed.
    for (const { deliveryId } of pushes) this.#given.add(deliveryId);
    for (const group of groups) {
      const onReply = (reply: HoldReply): void => this.#take(reply);
      await this.#send<HoldReply>(child, { kind: "hold", pushes: group, handOver }, { onReply });
      for (const { deliveryId } of group) brought.add(deliveryId);
    }
    this.#linkFailures = 0;
  }

  /** A child that another session has taken over would apply the pushes to that session. */
  #send<T>(child: Child, body: FrameBody, options: LinkSendOptions<T>): Promise<T> {
    if (isChildOf(this.#core, child)) return child.link.send<T>(body, options);
    return Promise.reject(new WireError("child_exited", "Another session has taken over the session's pi."));
  }

  async #carry(child: Child): Promise<void> {
    if (this.#core.state.kind !== "idle" || !this.#tracker.wantsCarrier(this.#core.sessionId)) return;
    await this.#sendCarrier(child);
  }

  /** Throws `wrong_state` if the named push is on another branch of the session's tree. */
  async #sendCarrier(child: Child, { deliveryId, onSent, by }: Partial<Resend> = {}): Promise<void> {
    const onReply = (reply: CarryReply): void => {
      if (!isCarryReply(reply)) throw new WireError("link_failed", "The helper's reply to a carry is invalid.");
      if (reply.isOffBranch === true && deliveryId !== undefined) throw this.#offBranch(deliveryId);
      onSent?.();
      if (reply.started) this.#core.runStarted(undefined, by);
    };
    const frame = { kind: "carry", ...(deliveryId === undefined ? {} : { deliveryId }) } as const;
    await this.#send<CarryReply>(child, frame, { onReply });
  }

  #offBranch(deliveryId: string): WireError {
    const why =
      "The push is on a branch that the session has left, so no request can carry it. Move to that branch first.";
    return new WireError("wrong_state", why, { delivery: this.#tracker.get(deliveryId) });
  }

  #take(reply: HoldReply): void {
    if (!isHoldReply(reply)) throw new WireError("link_failed", "The helper's reply to a hold is invalid.");
    const { held, inserted, running, refused } = reply;
    const { sessionId } = this.#core;
    const at = Date.now();
    for (const id of held) this.#tracker.apply(sessionId, id, { kind: "held", at });
    for (const id of inserted) this.#tracker.apply(sessionId, id, { kind: "inserted", at });
    for (const { deliveryId, why } of refused ?? []) {
      const reason = { code: "refused_by_pi", message: `The helper rejected it: ${why}` } as const;
      this.#tracker.apply(sessionId, deliveryId, { kind: "withdrawn", as: "failed", at, reason });
    }
    // A prompt that arrives now must find the session running, before pi's own agent_start.
    if (running && this.#core.state.kind === "idle") this.#core.runStarted();
  }
}

/** A request to carry a parked push. */
interface Resend {
  readonly deliveryId: string;
  readonly onSent: () => void;
  readonly by: By | undefined;
}

/** Splits pushes into frames of at most {@link maxHoldBytes}, in order. */
function grouped(pushes: readonly HeldPush[]): HeldPush[][] {
  const groups: HeldPush[][] = [];
  let bytes = 0;
  for (const push of pushes) {
    const size = Buffer.byteLength(JSON.stringify(push));
    const group = groups.at(-1);
    if (group === undefined || bytes + size > maxHoldBytes) {
      groups.push([push]);
      bytes = size;
    } else {
      group.push(push);
      bytes += size;
    }
  }
  return groups;
}
