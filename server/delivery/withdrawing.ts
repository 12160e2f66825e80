import { WireError } from "../../protocol/errors.ts";
import type { ReleaseReply } from "../../protocol/link.ts";
import { isChildOf, type SessionCore } from "../core/session-core.ts";
import type { Child } from "../pi/child.ts";
import { isReleaseReply } from "../pi/outward-frame.ts";
import { deliveriesIn } from "../pi/session-file.ts";
import type { Withdrawal } from "./tracked.ts";
import type { DeliveryTracker } from "./tracker.ts";

/** What is known of the way of pushes to the helper. */
export interface GivenPushes {
  /** Whether the child's helper may have the push, or the transcript that it began with. */
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
  /** Those that are being taken back, with how many do so. */
  readonly #underWay = new Map<string, number>();

  constructor(core: SessionCore, tracker: DeliveryTracker, pushes: GivenPushes) {
    this.#core = core;
    this.#tracker = tracker;
    this.#pushes = pushes;
  }

  /**
   * Whether a push is being taken back. Meanwhile it is not brought to a helper, which would hold it again. Later pushes
   * wait as well, so that it keeps its place where it is not taken back after all.
   */
  isUnderWay(deliveryId: string): boolean {
    return this.#underWay.has(deliveryId);
  }

  /** Resolves when it is decided for each: withdrawn, or inserted. Throws what the link can throw. */
  async withdraw(deliveryIds: readonly string[], withdrawal: Withdrawal): Promise<void> {
    for (const id of deliveryIds) this.#underWay.set(id, (this.#underWay.get(id) ?? 0) + 1);
    try {
      await this.#tracker.stored(deliveryIds);
      await this.#decide(deliveryIds, withdrawal);
    } finally {
      for (const id of deliveryIds) {
        const others = (this.#underWay.get(id) ?? 0) - 1;
        if (others > 0) this.#underWay.set(id, others);
        else this.#underWay.delete(id);
      }
    }
  }

  /** As {@link withdraw}, for a session that has no child. Nothing is decided when one is started meanwhile. */
  async withdrawWithoutChild(deliveryIds: readonly string[], withdrawal: Withdrawal): Promise<void> {
    if (hasChild(this.#core)) return;
    await this.#fromFile(this.#tracker.withdrawable(deliveryIds), withdrawal);
  }

  async #decide(deliveryIds: readonly string[], withdrawal: Withdrawal): Promise<void> {
    for (;;) {
      const left = this.#tracker.withdrawable(deliveryIds);
      if (left.length === 0) return;
      const { state } = this.#core;
      if (state.kind === "idle" || state.kind === "running") await this.#fromHelper(state.child, left, withdrawal);
      else if (state.kind === "starting") await this.#core.startOver();
      else await this.#fromFile(left, withdrawal);
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
      const onReply = (reply: ReleaseReply): void => this.#take(reply, new Set(given), withdrawal);
      const reply = await child.link.send<ReleaseReply>({ kind: "release", deliveryIds: given }, { onReply });
      await this.#decided(
        child,
        given.filter((id) => reply.pending.includes(id)),
      );
    } catch (error) {
      // Another session may have taken the child over: nobody there has them.
      if (!isChildOf(this.#core, child)) return;
      if (child.state.kind === "ready") throw error;
      await child.exited;
    }
  }

  /** A reply that leaves one out would be asked for without end. What was not asked for is not acted on. */
  #take(reply: ReleaseReply, given: ReadonlySet<string>, withdrawal: Withdrawal): void {
    if (!isReleaseReply(reply)) throw nonsense("is none");
    const { released, tooLate, pending } = reply;
    const said = new Set([...released, ...tooLate, ...pending]);
    if (![...given].every((id) => said.has(id))) throw nonsense("leaves pushes out");
    const asked = (ids: readonly string[]): readonly string[] => ids.filter((id) => given.has(id));
    this.#inserted(asked(tooLate));
    this.#apply(asked(released), withdrawal);
    this.#tracker.withdrawLater(asked(pending), withdrawal);
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
    if (hasChild(this.#core)) return;
    this.#inserted(written);
    this.#apply(
      left.filter((id) => !written.has(id)),
      withdrawal,
    );
  }

  #inserted(deliveryIds: Iterable<string>): void {
    const { sessionId } = this.#core;
    for (const id of deliveryIds) this.#tracker.apply(sessionId, id, { kind: "inserted", at: Date.now() });
  }

  #apply(deliveryIds: readonly string[], withdrawal: Withdrawal): void {
    for (const id of deliveryIds) this.#tracker.apply(this.#core.sessionId, id, withdrawal);
  }
}

function hasChild({ state }: SessionCore): boolean {
  return state.kind === "starting" || state.kind === "idle" || state.kind === "running";
}

function nonsense(what: string): WireError {
  return new WireError("link_failed", `The helper's reply to a release ${what}.`);
}
