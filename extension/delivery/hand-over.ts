import type { CustomMessageEntryDraft, ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { CARRIER_TYPE } from "../../protocol/link.ts";
import type { CarryReply, HeldPush, HoldReply, ReleaseReply } from "../../protocol/link-inward.ts";
import type { Boundary, BoundaryProposal } from "../boundary.ts";
import type { OutwardBody } from "../link/outbound.ts";
import type { Memory } from "../memory.ts";
import type { RunWatch } from "../run-watch.ts";
import { carrierText } from "../stages/carrier.ts";
import { findEntries } from "./branch.ts";
import { type HeldItem, HeldList } from "./held.ts";
import type { InsertedPushes } from "./inserted.ts";
import { markedDetails } from "./marker.ts";
import { actionsAfterRun, dueAt, type RunEnd, wantsRun } from "./moments.ts";

export interface HandOverOptions {
  readonly pi: Pick<ExtensionAPI, "sendMessage">;
  readonly memory: Memory;
  readonly run: RunWatch;
  readonly inserted: InsertedPushes;
  readonly send: (frame: OutwardBody) => void;
  readonly fault: (where: string, thrown: unknown) => void;
  /** Schedules a call of {@link HandOver.retry}: a push waits for a change for which pi sends no event. */
  readonly wait: () => void;
}

/** Number of failed attempts to start a run for a push; after that it waits for a run with another cause. */
const maxLostStarts = 3;

/**
 * Hands held pushes to pi, each exactly once: as drafts at a boundary during a run, otherwise as messages. pi's own
 * queue never holds a push. A push counts as inserted only when its entry is in the transcript, and is handed over
 * again only when its entry can no longer appear.
 */
export class HandOver {
  readonly #options: HandOverOptions;
  readonly #held: HeldList;

  constructor(options: HandOverOptions) {
    this.#options = options;
    this.#held = new HeldList(options.memory.held);
  }

  /** Holds pushes and hands over those that are due, unless a prompt is about to follow. */
  hold(pushes: readonly HeldPush[], ctx: ExtensionContext, when: "now" | "later" = "now"): HoldReply {
    const newPushes = pushes.filter(({ deliveryId }) => !this.#held.has(deliveryId));
    const found = findEntries(ctx.sessionManager, new Set(newPushes.map(({ deliveryId }) => deliveryId)));
    for (const push of newPushes) {
      const entry = found.get(push.deliveryId);
      if (entry === undefined) this.#held.add(push);
      else this.#options.inserted.add(entry);
    }
    if (when === "now") this.#handOverIdle(ctx, "native");
    return this.#reply(
      pushes.map(({ deliveryId }) => deliveryId),
      ctx,
    );
  }

  /**
   * Releases pushes. One already offered to pi is either found in the transcript, or released once pi proves not to
   * have it.
   */
  release(deliveryIds: readonly string[], ctx: ExtensionContext): ReleaseReply {
    this.look(ctx);
    const released: string[] = [];
    const pending: string[] = [];
    const unknown = new Set<string>();
    for (const id of deliveryIds) {
      const how = this.#held.release(id);
      if (how === "released") released.push(id);
      else if (how === "pending") pending.push(id);
      else unknown.add(id);
    }
    const found = findEntries(ctx.sessionManager, unknown);
    for (const id of unknown) if (!found.has(id)) released.push(id);
    if (pending.length > 0) this.#options.wait();
    return { released, tooLate: [...found.keys()], pending };
  }

  /** Appends all held pushes before a prompt. Appends nothing while pi is busy. */
  beforePrompt(ctx: ExtensionContext): HoldReply {
    const ids = this.#held.ids();
    if (ctx.isIdle()) for (const item of dueAt("beforePrompt", this.#held.items())) this.#append(item, ctx);
    return this.#reply(ids, ctx);
  }

  /**
   * Starts a run for undelivered pushes in the transcript and for held pushes. A current run sends them anyway; if pi
   * is busy for another reason, retries later.
   */
  carry(ctx: ExtensionContext): CarryReply {
    const { memory, run, wait } = this.#options;
    memory.isCarryWanted = false;
    if (!ctx.isIdle()) {
      if (!run.isRunning(ctx)) {
        memory.isCarryWanted = true;
        wait();
      }
      return { started: false };
    }
    for (const item of dueAt("carry", this.#held.items())) this.#append(item, ctx);
    this.#sendCarrier(ctx);
    return { started: this.#options.run.isRunning(ctx) };
  }

  held(): string[] {
    return this.#held.ids();
  }

  /** Whether a push, or a carrier, waits only for pi. */
  get isWaiting(): boolean {
    const { isCarryWanted } = this.#options.memory;
    return (
      isCarryWanted ||
      this.#held.items().some(({ push, custody }) => push.deliverAs !== "nextTurn" && custody.kind !== "parked")
    );
  }

  /**
   * Returns the drafts for a boundary. None after a failed or aborted turn or during an abort, because no further
   * request of the run is certain.
   */
  atBoundary({ hook, state, ctx }: Boundary): BoundaryProposal | undefined {
    this.look(ctx, "draft");
    if (state.outcome !== "completed" || ctx.signal?.aborted === true) return undefined;
    const due = dueAt(hook === "turn_end" ? "turnEnd" : "beforeSettle", this.#held.items());
    if (due.length === 0) return undefined;
    this.#held.offer(
      due.map(({ push }) => push.deliveryId),
      "draft",
    );
    const drafts = due.map(({ push }) => ({ type: "custom_message" as const, ...messageOf(push) }));
    return wantsRun(due) ? { drafts, continue: true } : { drafts };
  }

  /** Ends the run: drops, parks or keeps the pushes still held, and reports it. */
  settled(end: RunEnd, ctx: ExtensionContext): void {
    this.#options.memory.isCarryWanted = false;
    this.look(ctx, "draft", "run");
    const { drop, park } = actionsAfterRun(end, this.#held.items());
    for (const id of drop) this.#held.release(id);
    if (drop.length > 0) this.#options.send({ kind: "dropped", deliveryIds: drop, reason: "abort" });
    this.#held.park(park);
    const due = new Set(dueAt("idle", this.#held.items()));
    const held = this.#held
      .items()
      .filter((item) => !due.has(item) || item.custody.kind === "parked")
      .map(({ push }) => push.deliveryId);
    this.#options.send({ kind: "settled", aborted: end === "aborted", failed: end === "failed", held });
    this.#handOverIdle(ctx, "carrier");
  }

  /** Retries pushes that had to wait for pi. During a run the boundaries do this. */
  retry(ctx: ExtensionContext): void {
    const { memory, run, wait } = this.#options;
    if (memory.run.kind === "running") return;
    if (run.isPrompting()) {
      wait();
      return;
    }
    if (ctx.isIdle()) {
      run.observedIdle();
      this.look(ctx, "run");
    } else if (memory.run.kind === "starting") wait();
    this.#handOverIdle(ctx, memory.run.kind === "settling" ? "carrier" : "native");
    if (memory.isCarryWanted) this.carry(ctx);
  }

  /**
   * Searches the transcript for offered pushes. `over`: the kinds of offer that pi has finished by now; pushes offered
   * that way and not found are held again.
   */
  look(ctx: ExtensionContext, ...over: readonly ("draft" | "run")[]): void {
    const offered = this.#held.offered("draft", "run");
    if (offered.size === 0) return;
    const found = findEntries(ctx.sessionManager, offered);
    for (const [id, entry] of found) {
      this.#held.seen(id);
      this.#options.inserted.add(entry);
    }
    const deliveryIds = [...offered].filter((id) => found.has(id));
    if (deliveryIds.length > 0) this.#options.send({ kind: "inserted", deliveryIds });
    for (const id of this.#held.offered(...over)) this.#held.takeBack(id);
    const released = this.#held.takeReleased();
    if (released.length > 0) this.#options.send({ kind: "dropped", deliveryIds: released, reason: "released" });
    const lost = this.#held
      .items()
      .filter(({ lostStarts, custody }) => lostStarts >= maxLostStarts && custody.kind === "waiting");
    for (const { push } of lost)
      this.#options.fault("hand-over", new Error(`pi did not start a run for ${push.deliveryId}.`));
    this.#held.park(lost.map(({ push }) => push.deliveryId));
  }

  /** Drops held pushes because the session was replaced. */
  forget(): void {
    this.#held.clear();
  }

  /**
   * Hands over while pi is idle. Several pushes enter the same request: all but the last are appended, the last starts
   * the run. `carrier`: pi may defer the start and lose it silently, so all pushes are appended, which is synchronous,
   * and a carrier message starts the run.
   */
  #handOverIdle(ctx: ExtensionContext, start: "native" | "carrier"): void {
    const due = dueAt("idle", this.#held.items());
    if (due.length === 0) return;
    if (!ctx.isIdle()) {
      this.#options.wait();
      return;
    }
    const isRunWanted = wantsRun(due.filter(({ custody }) => custody.kind === "waiting"));
    const starter = isRunWanted && start === "native" ? due.at(-1) : undefined;
    for (const item of due) if (item !== starter) this.#append(item, ctx);
    if (starter !== undefined) this.#start(starter, ctx);
    else if (isRunWanted) this.#sendCarrier(ctx);
  }

  /** Appends while idle. pi appends synchronously, so a missing entry means that pi refused it. */
  #append({ push }: HeldItem, ctx: ExtensionContext): void {
    this.#held.offer([push.deliveryId], "draft");
    this.#options.pi.sendMessage(messageOf(push), { triggerTurn: false });
    this.look(ctx, "draft");
  }

  #start({ push }: HeldItem, ctx: ExtensionContext): void {
    this.#held.offer([push.deliveryId], "run");
    this.#startRun(messageOf(push), ctx);
  }

  #sendCarrier(ctx: ExtensionContext): void {
    this.#startRun({ customType: CARRIER_TYPE, content: carrierText, display: false }, ctx);
  }

  /**
   * Starts a run while idle. pi is busy from now on; if it is idle later without the message, the run did not start.
   */
  #startRun(message: Parameters<ExtensionAPI["sendMessage"]>[0], ctx: ExtensionContext): void {
    this.#options.pi.sendMessage(message, { triggerTurn: true });
    this.#options.run.asked(ctx);
    this.#options.wait();
  }

  #reply(deliveryIds: readonly string[], ctx: ExtensionContext): HoldReply {
    return {
      held: deliveryIds.filter((id) => this.#held.has(id)),
      inserted: deliveryIds.filter((id) => !this.#held.has(id)),
      running: this.#options.run.isRunning(ctx),
    };
  }
}

function messageOf(push: HeldPush): Omit<CustomMessageEntryDraft, "type"> {
  return { customType: push.customType, content: push.content, display: push.display, details: markedDetails(push) };
}
