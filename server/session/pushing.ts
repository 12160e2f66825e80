import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import type { CarryReply, HoldReply } from "../../protocol/link.ts";
import type { DeliveryTracker } from "../delivery/tracker.ts";
import type { Child } from "../pi/child.ts";
import type { SessionCore } from "./session-core.ts";

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

  constructor(core: SessionCore, tracker: DeliveryTracker, log: Logger) {
    this.#core = core;
    this.#tracker = tracker;
    this.#log = log;
  }

  /** Brings what is new. Never rejects: the outcome is in the deliveries. */
  async handOver(): Promise<void> {
    try {
      await this.#core.scope.run(async () => {
        const child = await this.#core.awake();
        await this.hold(child);
      });
    } catch (error) {
      this.#log.warn({ err: error }, "pushes wait: they could not be brought to pi");
    }
  }

  /** For a new child, or a helper that was loaded anew: everything is brought again, which the helper takes but once. */
  async resume(child: Child): Promise<void> {
    this.#givenTo = undefined;
    await this.hold(child);
    if (this.#core.state.kind !== "running" && this.#tracker.wantsCarrier(this.#core.sessionId)) {
      await child.link.send<CarryReply>(
        { kind: "carry" },
        { onReply: ({ started }) => started && this.#core.runStarted() },
      );
    }
  }

  /** Before a prompt: has the helper append what waits for one. */
  async beforePrompt(child: Child): Promise<void> {
    if (!this.#tracker.waitForPrompt(this.#core.sessionId)) return;
    await this.hold(child);
    await child.link.send<HoldReply>({ kind: "beforePrompt" }, { onReply: (reply) => this.#take(reply) });
  }

  async hold(child: Child): Promise<void> {
    if (this.#givenTo !== child) {
      this.#givenTo = child;
      this.#given = new Set();
    }
    const pushes = this.#tracker.toHold(this.#core.sessionId).filter(({ deliveryId }) => !this.#given.has(deliveryId));
    if (pushes.length === 0) return;
    for (const { deliveryId } of pushes) this.#given.add(deliveryId);
    try {
      await child.link.send<HoldReply>({ kind: "hold", pushes }, { onReply: (reply) => this.#take(reply) });
    } catch (error) {
      for (const { deliveryId } of pushes) this.#given.delete(deliveryId);
      throw error instanceof Error ? error : new WireError("link_failed", String(error));
    }
  }

  #take({ held, inserted, running }: HoldReply): void {
    const { sessionId } = this.#core;
    const at = Date.now();
    for (const id of held) this.#tracker.apply(sessionId, id, { kind: "held", at });
    for (const id of inserted) this.#tracker.apply(sessionId, id, { kind: "inserted", at });
    // A prompt that comes now must find the session running, before pi's own agent_start.
    if (running && this.#core.state.kind === "idle") this.#core.runStarted();
  }
}
