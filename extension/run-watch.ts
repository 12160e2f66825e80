import type { AgentSettledEvent, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { RunEnd } from "./delivery/moments.ts";
import type { Memory, RunPhase } from "./memory.ts";

/** Time limit for a prompt: an extension can handle it without any event. */
const longestPromptMs = 2_000;

/** Tracks pi's run by its events, because `ctx.isIdle()` is not enough. */
export class RunWatch {
  readonly #memory: Pick<Memory, "run">;
  /** Whether `agent_settled` reports aborted runs, as since pi 1.1.0. */
  #isAbortSaid = false;

  constructor(memory: Pick<Memory, "run">) {
    this.#memory = memory;
  }

  /**
   * Whether a run is active or was started by us. pi can be busy for other reasons, such as a requested compaction. A
   * run that a prompt is about to start counts from its `agent_start`.
   */
  isRunning(ctx: ExtensionContext): boolean {
    const { kind } = this.#memory.run;
    return (kind === "running" || kind === "starting") && !ctx.isIdle();
  }

  /** An idle pi was given a message that starts a run. pi is busy immediately, unless it defers the start. */
  asked(ctx: ExtensionContext): void {
    if (this.#memory.run.kind !== "running" && !ctx.isIdle()) this.#memory.run = { kind: "starting" };
  }

  /** pi is idle, so a requested run did not start. */
  observedIdle(): void {
    if (this.#memory.run.kind === "starting") this.#memory.run = { kind: "idle" };
  }

  /** `input`: a prompt has arrived. */
  prompted(now = Date.now()): void {
    const { kind } = this.#memory.run;
    if (kind !== "running" && kind !== "starting") this.#memory.run = { kind: "prompting", since: now };
  }

  /** Whether a run started now would collide with the one that a prompt is about to start. */
  isPrompting(now = Date.now()): boolean {
    const { run } = this.#memory;
    return run.kind === "prompting" && now - run.since < longestPromptMs;
  }

  /** `agent_start`: pi sends one for each part of a run, and again after a retry or a continuation. */
  started(ctx: ExtensionContext): void {
    this.#memory.run = {
      kind: "running",
      signal: ctx.signal,
      last: "completed",
      isCompacted: false,
      isBeforeSettleSeen: false,
    };
  }

  /** An assistant's message is complete. */
  answered(stopReason: string, ctx: ExtensionContext): void {
    const run = this.#running(ctx);
    const last = stopReason === "aborted" || stopReason === "error" ? stopReason : "completed";
    this.#memory.run = { ...run, signal: ctx.signal ?? run.signal, last };
  }

  /** A compaction has ended, or failed. */
  compacted(): void {
    const { run } = this.#memory;
    if (run.kind === "running") this.#memory.run = { ...run, isCompacted: true };
  }

  beforeSettle(ctx: ExtensionContext): void {
    this.#memory.run = { ...this.#running(ctx), isBeforeSettleSeen: true };
  }

  /**
   * Whether only `agent_before_settle` reveals an aborted run: pi before 1.1.0 does not report it, and the signal is
   * not set while pi waits for a retry or compacts.
   */
  get needsSettleHook(): boolean {
    const { run } = this.#memory;
    return !this.#isAbortSaid && run.kind === "running" && isEndUnclear(run);
  }

  /**
   * `agent_settled`: returns how the run ended. pi reports an abort since 1.1.0; before, it is inferred from skipped
   * events.
   */
  settled(event: AgentSettledEvent): RunEnd {
    const { run } = this.#memory;
    this.#memory.run = { kind: "settling" };
    const isSaid = "aborted" in event && typeof event.aborted === "boolean";
    this.#isAbortSaid ||= isSaid;
    if (isSaid ? event.aborted === true : wasAborted(run)) return "aborted";
    return run.kind === "running" && run.last === "error" ? "failed" : "completed";
  }

  /** An inward frame arrived: pi defers frames until every extension has been notified of the settled run. */
  frameReceived(): void {
    if (this.#memory.run.kind === "settling") this.#memory.run = { kind: "idle" };
  }

  sessionReplaced(): void {
    this.#memory.run = { kind: "idle" };
  }

  #running(ctx: ExtensionContext): Extract<RunPhase, { kind: "running" }> {
    const { run } = this.#memory;
    if (run.kind === "running") return run;
    return { kind: "running", signal: ctx.signal, last: "completed", isCompacted: false, isBeforeSettleSeen: false };
  }
}

function isEndUnclear({ last, isCompacted }: Extract<RunPhase, { kind: "running" }>): boolean {
  return last !== "completed" || isCompacted;
}

function wasAborted(run: RunPhase): boolean {
  if (run.kind !== "running") return false;
  return run.signal?.aborted === true || (isEndUnclear(run) && !run.isBeforeSettleSeen);
}
