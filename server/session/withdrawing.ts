import type { ReleaseReply } from "../../protocol/link.ts";
import type { DeliveryTracker, Withdrawal } from "../delivery/tracker.ts";
import type { Child } from "../pi/child.ts";
import { isReleaseReply } from "../pi/outward-frame.ts";
import { deliveriesIn } from "../pi/session-file.ts";
import type { SessionCore } from "./session-core.ts";

/** What is known of the way of pushes to the helper. */
export interface GivenPushes {
  /** Whether the child's helper has been given the push, or is about to be. */
  isGiven(child: Child, deliveryId: string): boolean;
  /** Resolves when what is on its way to the helper is there, or failed. */
  brought(): Promise<void>;
}

/**
 * Takes back pushes that do not stand in the transcript. Whether one does is known by whoever has it: the helper, else
 * the session file; so a push is never both, taken back and inserted, and never neither.
 */
export class Withdrawing {
  readonly #core: SessionCore;
  readonly #tracker: DeliveryTracker;
  readonly #pushes: GivenPushes;

  constructor(core: SessionCore, tracker: DeliveryTracker, pushes: GivenPushes) {
    this.#core = core;
    this.#tracker = tracker;
    this.#pushes = pushes;
  }

  /** Resolves when it is decided for each: withdrawn, or inserted. Throws what the link can throw. */
  async withdraw(deliveryIds: readonly string[], withdrawal: Withdrawal): Promise<void> {
    for (;;) {
      const left = this.#tracker.withdrawable(deliveryIds);
      if (left.length === 0) return;
      const { state } = this.#core;
      if (state.kind === "idle" || state.kind === "running") await this.#fromHelper(state.child, left, withdrawal);
      else if (state.kind === "starting") await this.#started();
      else await this.#fromFile(left, withdrawal);
    }
  }

  /** Resolves when the start under way has come to its end. A session that is ending refuses to be waited for. */
  async #started(): Promise<void> {
    try {
      await this.#core.awake();
    } catch (error) {
      // A start that has failed leaves another state behind; without one there is nothing to wait for.
      if (this.#core.state.kind === "starting") throw error;
    }
  }

  async #fromHelper(child: Child, left: readonly string[], withdrawal: Withdrawal): Promise<void> {
    const given = left.filter((id) => this.#pushes.isGiven(child, id));
    // A child's helper is given all that there is when it starts: these came later, and nobody has them.
    this.#apply(
      left.filter((id) => !given.includes(id)),
      withdrawal,
    );
    if (given.length === 0) return;
    try {
      await this.#pushes.brought();
      const onReply = (reply: ReleaseReply): void => this.#take(reply, withdrawal);
      const reply = await child.link.send<ReleaseReply>({ kind: "release", deliveryIds: given }, { onReply });
      await this.#decided(child, reply.pending);
    } catch (error) {
      if (child.state.kind === "ready") throw error;
      await child.exited;
    }
  }

  #take(reply: ReleaseReply, withdrawal: Withdrawal): void {
    if (!isReleaseReply(reply)) throw new TypeError("The helper's reply to a release is none.");
    this.#apply(reply.released, withdrawal);
    this.#tracker.withdrawLater(reply.pending, withdrawal);
    const { sessionId } = this.#core;
    for (const id of reply.tooLate) this.#tracker.apply(sessionId, id, { kind: "inserted", at: Date.now() });
  }

  /** Until the helper has said what became of those that pi was given. */
  async #decided(child: Child, pending: readonly string[]): Promise<void> {
    const waits = pending.map((id) => this.#tracker.leftHelper(id));
    await Promise.race([Promise.all(waits), child.exited]);
  }

  /** Without a child nobody holds anything: the last one has written what it has written. */
  async #fromFile(left: readonly string[], withdrawal: Withdrawal): Promise<void> {
    await this.#core.cleaned();
    const written = await deliveriesIn(this.#core.file, left);
    const { state, sessionId } = this.#core;
    if (state.kind === "starting" || state.kind === "idle" || state.kind === "running") return;
    for (const id of written) this.#tracker.apply(sessionId, id, { kind: "inserted", at: Date.now() });
    this.#apply(
      left.filter((id) => !written.has(id)),
      withdrawal,
    );
  }

  #apply(deliveryIds: readonly string[], withdrawal: Withdrawal): void {
    this.#tracker.together(() => {
      for (const id of deliveryIds) this.#tracker.apply(this.#core.sessionId, id, withdrawal);
    });
  }
}
