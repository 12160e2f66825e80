import { isRecord } from "../../protocol/objects.ts";
import { within } from "../lib/deadline.ts";
import type { SerialQueue } from "../lib/serial-queue.ts";
import type { Child } from "../pi/child.ts";
import type { ChildLife } from "./child-life.ts";

/** Why a session's child is currently needed. */
export type AwakeReason =
  | "starting"
  | "running"
  | "calls"
  | "background"
  | "deliveries"
  | "dialog"
  | "subscription"
  | "ephemeral"
  | "unresponsive";

/** Something that may need a session's child while it exists. */
export interface Holder {
  readonly id: string;
  readonly gone: AbortSignal;
}

export interface HibernationOptions {
  readonly scope: SerialQueue;
  readonly life: ChildLife;
  /** Why the session needs the child while no call uses it. */
  readonly reason: () => AwakeReason | undefined;
  /** An idle child is ended after this time; 0: never. */
  readonly idleAfterMs: () => number;
  /** Queries a child that is about to be ended for later answers about the session. Never rejects. */
  readonly beforeEnd: (child: Child) => Promise<void>;
}

/** A way in which a child is ended. */
export interface FallAsleep {
  /** Also if a holder keeps it running. Default: then it is not ended. */
  readonly evenIfHeld?: boolean;
  /** Called when the child is about to be ended. Nothing can start another one meanwhile. */
  readonly atEnd?: () => void;
}

/** How long an idle pi may take to confirm that it is idle. */
const answerTimeoutMs = 5_000;

/** Decides whether a session's child is needed, and ends it if not. */
export class Hibernation {
  readonly #options: HibernationOptions;
  readonly #holders = new Map<string, () => void>();

  constructor(options: HibernationOptions) {
    this.#options = options;
  }

  get child(): Child | undefined {
    return this.#options.life.child;
  }

  /** The time of the child's last use, on the clock of `performance.now`. */
  get lastUsedAt(): number {
    return this.#options.life.lastUsedAt;
  }

  /** 0: an idle child is never ended. */
  get idleAfterMs(): number {
    return this.#options.idleAfterMs();
  }

  /** Whether the child has been idle for too long. */
  isDue(now: number): boolean {
    const { idleAfterMs } = this;
    if (this.child?.retires !== undefined) return true;
    return this.child !== undefined && idleAfterMs > 0 && now - this.lastUsedAt >= idleAfterMs;
  }

  /** Whether a holder keeps the child running. */
  get isHeld(): boolean {
    return this.#holders.size > 0;
  }

  /** Keeps the child until the holder ends or releases it. */
  hold({ id, gone }: Holder): void {
    if (gone.aborted || this.#holders.has(id)) return;
    const onGone = (): void => this.letGo(id);
    gone.addEventListener("abort", onGone, { once: true });
    this.#holders.set(id, () => gone.removeEventListener("abort", onGone));
  }

  letGo(holderId: string): void {
    this.#holders.get(holderId)?.();
    this.#holders.delete(holderId);
  }

  /** Why the child is needed, as far as the daemon can tell. */
  keepsAwake(evenIfHeld = false): AwakeReason | undefined {
    const needed = this.#needed(evenIfHeld);
    return (this.#options.life.child?.pending ?? 0) > 0 ? (needed ?? "calls") : needed;
  }

  /** `keepsAwake`, apart from commands that pi has not answered. */
  #needed(evenIfHeld = false): AwakeReason | undefined {
    const { scope, life, reason } = this.#options;
    if (life.state.kind === "starting") return "starting";
    if (life.runId !== undefined) return "running";
    if (scope.length > 0) return "calls";
    return reason() ?? (!evenIfHeld && this.isHeld && life.child?.retires === undefined ? "subscription" : undefined);
  }

  /**
   * Ends the child if it is not needed. Runs on the session's queue, so that no prompt is in progress. pi itself is
   * asked last: an extension may have begun work without an event so far. Resolves with the reason why it is kept;
   * else, as soon as the child is being ended, with the promise of that end.
   */
  async fallAsleep({
    evenIfHeld = false,
    atEnd = () => {},
  }: FallAsleep = {}): Promise<AwakeReason | { readonly ended: Promise<unknown> }> {
    const { scope, life } = this.#options;
    if (scope.isBusy) return this.keepsAwake(evenIfHeld) ?? "calls";
    const end = (): { readonly ended: Promise<unknown> } => {
      atEnd();
      return { ended: life.endChild() };
    };
    return await scope.run(async () => {
      const { child, uses } = life;
      // What the daemon itself reads after a run is answered before the question below.
      const reason = this.#needed(evenIfHeld);
      if (reason !== undefined) return reason;
      if (child === undefined) return end();
      // Slow work, which must not happen between pi's answer and the end of its stdin.
      await child.noteDescendants();
      await this.#options.beforeEnd(child);
      const answer = await within(child.send({ type: "get_state" }), answerTimeoutMs);
      if (answer.kind === "timeout") return "unresponsive";
      if (isAtWork(answer.value.data, child.retires !== undefined)) return "running";
      if (life.child !== child || life.uses !== uses) return "calls";
      return this.keepsAwake(evenIfHeld) ?? end();
    });
  }
}

/** A retired child gets no prompt that would begin a run for the messages in its queue. */
function isAtWork(state: unknown, isRetired: boolean): boolean {
  if (!isRecord(state)) return true;
  if (state["isStreaming"] === true || state["isCompacting"] === true) return true;
  return !isRetired && Number(state["pendingMessageCount"] ?? 0) > 0;
}
