import { within } from "../lib/deadline.ts";
import type { SerialQueue } from "../lib/serial-queue.ts";
import type { Child } from "../pi/child.ts";
import { isRecordObject } from "../pi/records.ts";
import type { ChildLife } from "./child-life.ts";

/** Why a session's child is needed now. */
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

/** Whoever may need a session's child for as long as it is there. */
export interface Holder {
  readonly id: string;
  readonly gone: AbortSignal;
}

export interface HibernationOptions {
  readonly scope: SerialQueue;
  readonly life: () => ChildLife;
  /** What the parts of the session know: each says why it needs the child, if it does. */
  readonly reasons: readonly (() => AwakeReason | undefined)[];
  /** An idle child is ended after so long; 0: never for its idleness. */
  readonly idleAfterMs: () => number;
  /** Asks a child that is about to be ended for what questions about the session need. Never rejects. */
  readonly beforeEnd: (child: Child) => Promise<void>;
}

/** How long an idle pi may take to say that it is idle. */
const answerTimeoutMs = 5_000;

/** When a session's child is needed, and its end when it is not. */
export class Hibernation {
  readonly #options: HibernationOptions;
  readonly #holders = new Map<string, () => void>();

  constructor(options: HibernationOptions) {
    this.#options = options;
  }

  get child(): Child | undefined {
    return this.#options.life().child;
  }

  /** When the child was used last, by the clock of `performance.now`. */
  get lastUsedAt(): number {
    return this.#options.life().lastUsedAt;
  }

  /** Whether the child was idle for longer than it may be. */
  isDue(now: number): boolean {
    const idleAfterMs = this.#options.idleAfterMs();
    return this.child !== undefined && idleAfterMs > 0 && now - this.lastUsedAt >= idleAfterMs;
  }

  /** Whether somebody wants the child to be there for no other reason. */
  get isHeld(): boolean {
    return this.#holders.size > 0;
  }

  /** Keeps the child until the holder goes or lets go. */
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

  /** Why the child cannot be spared, as far as the daemon knows. */
  keepsAwake(): AwakeReason | undefined {
    const { scope, reasons } = this.#options;
    const life = this.#options.life();
    if (life.state.kind === "starting") return "starting";
    if (life.runId !== undefined) return "running";
    if (scope.length > 0 || (life.child?.pending ?? 0) > 0) return "calls";
    for (const reason of reasons) {
      const said = reason();
      if (said !== undefined) return said;
    }
    return this.isHeld ? "subscription" : undefined;
  }

  /**
   * Ends the child if nothing needs it, on the session's queue, so that no prompt is under way. pi itself is asked last: an
   * extension may have begun something that no event has told yet. Resolves with why it is kept; else when the child is
   * being ended, which takes a while, with the promise of that end.
   */
  async fallAsleep(): Promise<AwakeReason | { readonly ended: Promise<unknown> }> {
    const { scope } = this.#options;
    const life = this.#options.life();
    if (scope.isBusy) return this.keepsAwake() ?? "calls";
    return await scope.run(async () => {
      const { child, uses } = life;
      const reason = this.keepsAwake();
      if (reason !== undefined) return reason;
      if (child === undefined) return { ended: life.endChild() };
      // Takes its time, which is not to lie between pi's answer and the end of its stdin.
      await child.noteDescendants();
      await this.#options.beforeEnd(child);
      const answer = await within(child.send({ type: "get_state" }), answerTimeoutMs);
      if (answer.kind === "timeout") return "unresponsive";
      if (isAtWork(answer.value.data)) return "running";
      if (life.child !== child || life.uses !== uses) return "calls";
      return this.keepsAwake() ?? { ended: life.endChild() };
    });
  }
}

function isAtWork(state: unknown): boolean {
  if (!isRecordObject(state)) return true;
  return (
    state["isStreaming"] === true || state["isCompacting"] === true || Number(state["pendingMessageCount"] ?? 0) > 0
  );
}
