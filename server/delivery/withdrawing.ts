import { WireError } from "../../protocol/errors.ts";
import type { ReleaseReply } from "../../protocol/link-inward.ts";
import { isChildOf, type SessionCore } from "../core/session-core.ts";
import type { Child } from "../pi/child.ts";
import { isReleaseReply } from "../pi/outward-frame.ts";
import { deliveriesIn } from "../pi/session-file.ts";
import type { Withdrawal } from "./tracked.ts";
import type { DeliveryTracker } from "./tracker.ts";

/** The state of pushes on their way to the helper. */
export interface GivenPushes {
  /** Whether the child's helper may have the push, or the transcript at the child's start may contain it. */
  isGiven(child: Child, deliveryId: string): boolean;
  /** Resolves when the current transfer to the helper has ended or failed. */
  brought(): Promise<void>;
}

/**
 * Withdraws pushes that are not in the transcript. The helper knows whether one is, or without a helper the session
 * file; so a push is always either withdrawn or inserted, never both and never neither.
 */
export class Withdrawing {
  readonly #core: SessionCore;
  readonly #tracker: DeliveryTracker;
  readonly #pushes: GivenPushes;
  /** Pushes being withdrawn, with the number of calls that do so. */
  readonly #underWay = new Map<string, number>();

  constructor(core: SessionCore, tracker: DeliveryTracker, pushes: GivenPushes) {
    this.#core = core;
    this.#tracker = tracker;
    this.#pushes = pushes;
  }

  /**
   * Whether a push is being withdrawn. Meanwhile it is not sent to a helper, which would hold it again. Later pushes
   * also wait, so that it keeps its position if it is not withdrawn after all.
   */
  isUnderWay(deliveryId: string): boolean {
    return this.#underWay.has(deliveryId);
  }

  /** Resolves when each is decided: withdrawn or inserted. Throws errors of the link. */
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

  /** Like {@link withdraw}, for a session without a child. Decides nothing if one is started meanwhile. */
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
    // A child's helper receives all pushes when it starts; these came later, so pi does not have them.
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
      // Another session may have taken over the child, so its helper does not have them.
      if (!isChildOf(this.#core, child)) return;
      if (child.state.kind === "ready") throw error;
      await child.exited;
    }
  }

  /**
   * A reply without one of the ids would cause endless repeats, so it is refused. Ids that were not requested are
   * ignored.
   */
  #take(reply: ReleaseReply, given: ReadonlySet<string>, withdrawal: Withdrawal): void {
    if (!isReleaseReply(reply)) throw nonsense("is invalid");
    const { released, tooLate, pending } = reply;
    const said = new Set([...released, ...tooLate, ...pending]);
    if (![...given].every((id) => said.has(id))) throw nonsense("omits pushes");
    const asked = (ids: readonly string[]): readonly string[] => ids.filter((id) => given.has(id));
    this.#inserted(asked(tooLate));
    this.#apply(asked(released), withdrawal);
    this.#tracker.withdrawLater(asked(pending), withdrawal);
  }

  /** Waits until the helper has reported the state of the pushes that pi received. */
  async #decided(child: Child, pending: readonly string[]): Promise<void> {
    const waits = pending.map((id) => this.#tracker.leftHelper(id));
    await Promise.race([Promise.all(waits), child.exited]);
  }

  /** Without a child the session file is final. */
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
