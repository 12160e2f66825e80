import type { CustomMessageEntryDraft, ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import {
  CARRIER_TYPE,
  type CarryReply,
  type HeldPush,
  type HoldReply,
  type ReleaseReply,
} from "../../protocol/link.ts";
import type { Boundary, BoundaryWish } from "../boundary.ts";
import type { OutwardBody } from "../link/outbound.ts";
import type { Memory } from "../memory.ts";
import type { RunWatch } from "../run-watch.ts";
import { carrierText } from "../stages/carrier.ts";
import { findEntries } from "./branch.ts";
import { type HeldItem, HeldList } from "./held.ts";
import { markedDetails } from "./marker.ts";
import { dueAt, leftBy, type RunEnd, wantsRun } from "./moments.ts";
import type { StandingList } from "./standing.ts";

export interface HandOverOptions {
  readonly pi: Pick<ExtensionAPI, "sendMessage">;
  readonly memory: Memory;
  readonly run: RunWatch;
  readonly standing: StandingList;
  readonly send: (frame: OutwardBody) => void;
  readonly fault: (where: string, thrown: unknown) => void;
  /** Asks for a call of {@link HandOver.retry} soon: a push waits for something of which pi sends no event. */
  readonly wait: () => void;
}

/** After so many runs that pi did not start for a push, the push waits for a run that something else starts. */
const maxLostStarts = 3;

/**
 * Hands held pushes to pi, each at its moment and exactly once: during a run as drafts of a boundary, else by a message.
 * pi's own queue never holds a push. What pi was given is looked for in the transcript: only what is seen there is
 * inserted, and only what cannot be there any more is handed over again.
 */
export class HandOver {
  readonly #options: HandOverOptions;
  readonly #held: HeldList;

  constructor(options: HandOverOptions) {
    this.#options = options;
    this.#held = new HeldList(options.memory.held);
  }

  /** Holds pushes, and hands over at once what can be, unless a prompt is about to follow. */
  hold(pushes: readonly HeldPush[], ctx: ExtensionContext, when: "now" | "later" = "now"): HoldReply {
    const strangers = pushes.filter(({ deliveryId }) => !this.#held.has(deliveryId));
    const standing = findEntries(ctx.sessionManager, new Set(strangers.map(({ deliveryId }) => deliveryId)));
    for (const push of strangers) {
      const entry = standing.get(push.deliveryId);
      if (entry === undefined) this.#held.add(push);
      else this.#options.standing.add(entry);
    }
    if (when === "now") this.#handOverIdle(ctx, "native");
    return this.#reply(
      pushes.map(({ deliveryId }) => deliveryId),
      ctx,
    );
  }

  /** Gives pushes up. One that pi was given is looked for: it is inserted, or given up once pi turns out not to have it. */
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
    const standing = findEntries(ctx.sessionManager, unknown);
    for (const id of unknown) if (!standing.has(id)) released.push(id);
    if (pending.length > 0) this.#options.wait();
    return { released, tooLate: [...standing.keys()], pending };
  }

  /** Appends everything that is held, since a prompt follows. While pi is busy nothing is appended. */
  beforePrompt(ctx: ExtensionContext): HoldReply {
    const ids = this.#held.ids();
    if (ctx.isIdle()) for (const item of dueAt("beforePrompt", this.#held.items())) this.#append(item, ctx);
    return this.#reply(ids, ctx);
  }

  /**
   * Has a request made for what stands in the transcript undelivered and for what is held. A run that is on does so by
   * itself; while pi is busy otherwise it is tried again.
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

  /**
   * The drafts for a boundary. A failed or aborted turn takes none, since no request of its run is sure to follow; nor
   * does an abort that is under way.
   */
  atBoundary({ hook, state, ctx }: Boundary): BoundaryWish | undefined {
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

  /** The run is over: says so, and what becomes of the pushes that are still held. */
  settled(end: RunEnd, ctx: ExtensionContext): void {
    this.#options.memory.isCarryWanted = false;
    this.look(ctx, "draft", "run");
    const { drop, park } = leftBy(end, this.#held.items());
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

  /** Tries again what had to wait for pi. During a run its boundaries do that. */
  retry(ctx: ExtensionContext): void {
    const { memory, run, wait } = this.#options;
    if (memory.run.kind === "running") return;
    if (run.isPrompting()) {
      wait();
      return;
    }
    if (ctx.isIdle()) {
      run.foundIdle();
      this.look(ctx, "run");
    } else if (memory.run.kind === "starting") wait();
    this.#handOverIdle(ctx, memory.run.kind === "settling" ? "carrier" : "native");
    if (memory.isCarryWanted) this.carry(ctx);
  }

  /**
   * Looks whether what pi was given stands in the transcript now. `over`: the ways of which this moment proves that pi
   * is through with them; what was given so and is not there is held again.
   */
  look(ctx: ExtensionContext, ...over: readonly ("draft" | "run")[]): void {
    const offered = this.#held.offered("draft", "run");
    if (offered.size === 0) return;
    const found = findEntries(ctx.sessionManager, offered);
    for (const [id, entry] of found) {
      this.#held.seen(id);
      this.#options.standing.add(entry);
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
      this.#options.fault("hand-over", new Error(`pi starts no run for ${push.deliveryId}.`));
    this.#held.park(lost.map(({ push }) => push.deliveryId));
  }

  /** The session is another one: what is held was for the one before. */
  forget(): void {
    this.#held.clear();
  }

  /**
   * Hands over while no run is on. Several pushes enter the same request: all but the last are appended, the last starts
   * the run. `carrier`: pi may defer a start, and a deferred start can be lost unseen; so the pushes are all appended,
   * which is done at once, and a message without content of its own starts the run.
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

  /** Appends while idle. pi does so before it returns, so what is not there then was refused. */
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

  /** Starts a run while idle. pi is busy from here on; should it be idle again without the message, the run never was. */
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
