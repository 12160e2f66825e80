import type { AgentSettledEvent, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { RunEnd } from "./delivery/moments.ts";
import type { Memory, RunPhase } from "./memory.ts";

/** An extension that takes a prompt does so without any event, so a prompt is not waited for longer than this. */
const longestPromptMs = 2_000;

/** Follows pi's run by its events, for what `ctx.isIdle()` does not tell. */
export class RunWatch {
  readonly #memory: Pick<Memory, "run">;
  /** Whether `agent_settled` says that the run was aborted, as pi does from 1.1.0 on. */
  #isAbortSaid = false;

  constructor(memory: Pick<Memory, "run">) {
    this.#memory = memory;
  }

  /**
   * Whether a run is on, or was started by us. pi is busy for other reasons too, such as a compaction on request. A run
   * that a prompt is about to start counts once pi says that it has.
   */
  isRunning(ctx: ExtensionContext): boolean {
    const { kind } = this.#memory.run;
    return (kind === "running" || kind === "starting") && !ctx.isIdle();
  }

  /** pi was idle and was given a message that starts a run. It is busy at once, unless it defers the start. */
  asked(ctx: ExtensionContext): void {
    if (this.#memory.run.kind !== "running" && !ctx.isIdle()) this.#memory.run = { kind: "starting" };
  }

  /** pi is idle: a run that we have asked for has never been. */
  foundIdle(): void {
    if (this.#memory.run.kind === "starting") this.#memory.run = { kind: "idle" };
  }

  /** `input`: a prompt has come. */
  prompted(now = Date.now()): void {
    const { kind } = this.#memory.run;
    if (kind !== "running" && kind !== "starting") this.#memory.run = { kind: "prompting", since: now };
  }

  /** Whether a run started now would cross the one that a prompt is about to start. */
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
   * Whether only `agent_before_settle` tells if the run is aborted: pi before 1.1.0 does not say it, and the signal does not
   * while pi waits before a retry, or compacts.
   */
  get asksForEnd(): boolean {
    const { run } = this.#memory;
    return !this.#isAbortSaid && run.kind === "running" && isEndUnclear(run);
  }

  /** `agent_settled`: how the run ended. pi says whether it was aborted from 1.1.0 on; before, its silence does. */
  settled(event: AgentSettledEvent): RunEnd {
    const { run } = this.#memory;
    this.#memory.run = { kind: "settling" };
    const isSaid = "aborted" in event && typeof event.aborted === "boolean";
    this.#isAbortSaid ||= isSaid;
    if (isSaid ? event.aborted === true : wasAborted(run)) return "aborted";
    return run.kind === "running" && run.last === "error" ? "failed" : "completed";
  }

  /** An inward frame: pi defers them until every extension knows that the run has settled. */
  frameCame(): void {
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
