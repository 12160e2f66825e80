import type { Logger } from "pino";
import type { CarryReply, HeldPush, HoldReply } from "../../protocol/link.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { Child } from "../pi/child.ts";
import { isCarryReply, isHoldReply } from "../pi/outward-frame.ts";
import type { SessionCore } from "./session-core.ts";

/** One frame of pushes. A single push may be larger and then has a frame of its own. */
const maxHoldBytes = 8 * 1024 * 1024;
/** After so many crashes within the window, pushes wait for the next prompt or push to start a child. */
const maxCrashes = 3;
const crashWindowMs = 60_000;

/**
 * Brings a session's accepted pushes to the helper inside its pi, which hands each over at its moment. What cannot be
 * brought now stays accepted in the store, and is brought to the next child.
 */
export class Pushing {
  readonly #core: SessionCore;
  readonly #tracker: DeliveryTracker;
  readonly #log: Logger;
  /** Which pushes the present child's helper has been given. */
  #given = new Set<string>();
  #givenTo: Child | undefined;
  /** The hand-over that waits for its turn; further pushes go with it. */
  #waiting: Promise<void> | undefined;
  #crashes: number[] = [];

  constructor(core: SessionCore, tracker: DeliveryTracker, log: Logger) {
    this.#core = core;
    this.#tracker = tracker;
    this.#log = log;
  }

  /** Brings what is new, and has it handed over. Never rejects: the outcome is in the deliveries. */
  handOver(): Promise<void> {
    this.#waiting ??= this.#handOver();
    return this.#waiting;
  }

  /** For a new child, or a helper that was loaded anew: everything is brought again, which the helper takes but once. */
  async resume(child: Child, handOver: "now" | "later"): Promise<void> {
    this.#givenTo = undefined;
    await this.#bring(child, handOver);
    if (handOver === "now") await this.#carry(child);
  }

  /** Before a prompt: has the helper append what waits for one. A prompt is not refused for what pushes suffer. */
  async beforePrompt(child: Child): Promise<void> {
    if (!this.#tracker.waitForPrompt(this.#core.sessionId)) return;
    try {
      await this.#bring(child, "later");
      await child.link.send<HoldReply>({ kind: "beforePrompt" }, { onReply: (reply) => this.#take(reply) });
    } catch (error) {
      if (child.state.kind !== "ready") throw error;
      this.#log.error({ err: error }, "pushes could not be put before a prompt");
    }
  }

  /** The child has ended unasked: pushes that wait for an agent wake the session again, unless it keeps crashing. */
  afterCrash(): void {
    const { sessionId } = this.#core;
    if (!this.#tracker.wantsAgent(sessionId) && !this.#tracker.wantsCarrier(sessionId)) return;
    const now = Date.now();
    this.#crashes = [...this.#crashes.filter((at) => at > now - crashWindowMs), now];
    if (this.#crashes.length < maxCrashes) void this.handOver();
    else this.#log.error("pi keeps crashing; pushes wait for the next prompt or push");
  }

  async #handOver(): Promise<void> {
    // The turn may come at once: by then this promise must be noted as the one that waits.
    await Promise.resolve();
    try {
      await this.#core.scope.run(async () => {
        this.#waiting = undefined;
        const child = await this.#core.awake();
        await this.#bring(child, "now");
        await this.#carry(child);
      });
    } catch (error) {
      this.#waiting = undefined;
      this.#log.warn({ err: error }, "pushes wait: they could not be brought to pi");
    }
  }

  async #bring(child: Child, handOver: "now" | "later"): Promise<void> {
    if (this.#givenTo !== child) {
      this.#givenTo = child;
      this.#given = new Set();
    }
    const fresh = this.#tracker.toHold(this.#core.sessionId).filter(({ deliveryId }) => !this.#given.has(deliveryId));
    // Without anything new it still says that what was brought for a prompt need not wait any more.
    const groups = fresh.length === 0 && handOver === "now" && this.#given.size > 0 ? [[]] : grouped(fresh);
    for (const pushes of groups) await this.#hold(child, pushes, handOver);
  }

  async #hold(child: Child, pushes: readonly HeldPush[], handOver: "now" | "later"): Promise<void> {
    for (const { deliveryId } of pushes) this.#given.add(deliveryId);
    try {
      await child.link.send<HoldReply>({ kind: "hold", pushes, handOver }, { onReply: (reply) => this.#take(reply) });
    } catch (error) {
      for (const { deliveryId } of pushes) this.#given.delete(deliveryId);
      throw error;
    }
  }

  async #carry(child: Child): Promise<void> {
    if (this.#core.state.kind !== "idle" || !this.#tracker.wantsCarrier(this.#core.sessionId)) return;
    await child.link.send<CarryReply>(
      { kind: "carry" },
      { onReply: (reply) => isCarryReply(reply) && reply.started && this.#core.runStarted() },
    );
  }

  #take(reply: HoldReply): void {
    if (!isHoldReply(reply)) throw new TypeError("The helper's reply to a hold is none.");
    const { held, inserted, running, refused } = reply;
    const { sessionId } = this.#core;
    const at = Date.now();
    for (const id of held) this.#tracker.apply(sessionId, id, { kind: "held", at });
    for (const id of inserted) this.#tracker.apply(sessionId, id, { kind: "inserted", at });
    for (const { deliveryId, why } of refused ?? []) {
      const reason = { code: "refused_by_pi", message: `The helper does not take it: ${why}` } as const;
      this.#tracker.apply(sessionId, deliveryId, { kind: "dropped", at, reason });
    }
    // A prompt that comes now must find the session running, before pi's own agent_start.
    if (running && this.#core.state.kind === "idle") this.#core.runStarted();
  }
}

/** In frames of at most {@link maxHoldBytes}, in their order. */
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
