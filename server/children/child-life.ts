import type { Logger } from "pino";
import { v7 as uuidv7 } from "uuid";
import type { By } from "../../protocol/client-identity.ts";
import { type ErrorName, WireError } from "../../protocol/errors.ts";
import type { ChildExit } from "../../protocol/session.ts";
import type { InitialContext } from "../context/initial-context.ts";
import { childSinks, type SessionContext } from "../core/session-context.ts";
import type { SessionCore, StartPurpose } from "../core/session-core.ts";
import { mayBecome, type SessionState } from "../core/session-state.ts";
import type { Custody } from "../custody/custody.ts";
import { lossOf } from "../custody/ephemeral.ts";
import type { SerialQueue } from "../lib/serial-queue.ts";
import type { EventBackfill } from "../log/event-backfill.ts";
import type { Child, ChildSinks } from "../pi/child.ts";
import type { ChildEnvironment } from "../pi/child-environment.ts";
import type { ChildMcpServers } from "../pi/child-mcp-servers.ts";
import { type ReadyState, readyState } from "../pi/ready-state.ts";
import type { RunStarter } from "../prompts/runs.ts";
import type { SessionPrompts } from "../prompts/session-prompts.ts";
import type { StoredSession } from "../store/stored-session.ts";
import { StartRateLimit, type StartRateLimits } from "./start-rate-limit.ts";

export interface ChildLifeOptions {
  readonly source: ChildStarter;
  readonly startRate: StartRateLimits;
  readonly custody: Custody;
  readonly initialContext: Pick<InitialContext, "give">;
  readonly backfill: Pick<EventBackfill, "runIfLost">;
  readonly prompts: Pick<SessionPrompts, "runs" | "starter">;
}

/** Receives the reports of a starting child; the signal cancels the start. */
export interface StartSinks extends ChildSinks {
  /** Aborted when the session ends while its child starts. */
  readonly signal: AbortSignal;
  /** Called for each pi that is started, or taken from the warm pool. */
  readonly onPi: () => void;
  /** The variables of the child. Default: the daemon's own. */
  readonly environment?: ChildEnvironment | undefined;
  /** The MCP servers that it gets. Default: none. */
  readonly mcpServers?: ChildMcpServers | undefined;
}

export interface Started {
  readonly child: Child;
  readonly ready: ReadyState;
}

export interface ChildStarter {
  /** Throws errors of starting pi, `cwd_invalid` and `overloaded`; then nothing remains. */
  start(stored: StoredSession, sinks: StartSinks, log: Logger): Promise<Started>;
}

/** A child that ends because the session hibernates. */
interface Leaving {
  readonly child: Child;
  /** Resolves when it has left the session's file. Never rejects. */
  readonly left: Promise<unknown>;
}

/** A {@link SessionState}, with the hibernating child that has not left the file yet. */
type LifeState =
  | Exclude<SessionState, { readonly kind: "hibernated" | "starting" }>
  | { readonly kind: "hibernated"; readonly exit?: ChildExit | undefined; readonly leaving?: Leaving | undefined }
  | { readonly kind: "starting"; readonly leaving?: Leaving | undefined };

/** A start in progress. It outlasts the state `starting` until the child has the messages that waited for it. */
interface Start {
  readonly child: Promise<Child>;
  readonly abort: AbortController;
}

/** The children of one session, at most one at a time: their starts, ends and runs. */
export class ChildLife implements SessionCore {
  readonly #session: SessionContext;
  readonly #options: ChildLifeOptions;
  readonly #startRate: StartRateLimit;
  /** The first child that this daemon starts. */
  readonly #firstGeneration: number;
  #state: LifeState = { kind: "hibernated" };
  #start: Start | undefined;
  /** Whether the child of a former daemon has not answered yet. */
  isLeftAwaited = false;
  /** Resolves when the last child has been cleaned up. */
  #lastCleaned: Promise<void> = Promise.resolve();
  /** Children that belong to other sessions now. */
  readonly #given = new WeakSet<Child>();
  #uses = 0;
  #lastUsedAt = performance.now();
  /** Why no child may be started any more. Set before anything is awaited. */
  #refusal: WireError | undefined;

  constructor(session: SessionContext, options: ChildLifeOptions) {
    this.#session = session;
    this.#options = options;
    this.#startRate = new StartRateLimit(options.startRate);
    this.#firstGeneration = session.record.stored.generation + 1;
  }

  get sessionId(): string {
    return this.#session.sessionId;
  }

  get file(): string {
    return this.#session.record.stored.file;
  }

  get scope(): SerialQueue {
    return this.#session.scope;
  }

  get state(): SessionState {
    return this.#state;
  }

  /** The child, if one is usable. */
  get child(): Child | undefined {
    return this.#state.kind === "idle" || this.#state.kind === "running" ? this.#state.child : undefined;
  }

  get runId(): string | undefined {
    return this.#state.kind === "running" ? this.#state.runId : undefined;
  }

  get runsStarted(): number {
    return this.#options.prompts.runs.started;
  }

  /** Whether no child may be started any more. */
  get isEnding(): boolean {
    return this.#refusal !== undefined;
  }

  /** Number of uses of the child: requests for it, and starts and ends of runs. */
  get uses(): number {
    return this.#uses;
  }

  /** Time of the last use, on the clock of `performance.now`. */
  get lastUsedAt(): number {
    return this.#lastUsedAt;
  }

  /** `session_lost`, once the session's pi is lost and cannot be replaced. */
  get loss(): WireError | undefined {
    return lossOf(this.#session.record.stored, this.#state);
  }

  /**
   * Throws errors of starting, the reason why no child may be started, `overloaded` after too many starts,
   * `session_lost`, and errors of {@link Custody.check}.
   */
  async awake(purpose: StartPurpose = "work"): Promise<Child> {
    if (this.loss !== undefined) throw this.loss;
    const { child } = this;
    if (child !== undefined && this.runId === undefined && purpose !== "reading") {
      const found = await this.#options.custody.check(child);
      if (found !== "ready") await this.endChild();
      if (found instanceof WireError) throw found;
    }
    if (this.#refusal !== undefined) throw this.#refusal;
    this.#used();
    if (this.child !== undefined) return this.child;
    if (this.#start === undefined) {
      const tooMany = this.#startRate.refusal();
      if (tooMany !== undefined) throw tooMany;
      const abort = new AbortController();
      this.#start = { child: this.#begin(purpose, abort.signal), abort };
    }
    return await this.#start.child;
  }

  async startOver(): Promise<void> {
    await this.#start?.child.catch(() => {});
  }

  runStarted(promptId?: string, by?: By): string {
    const { prompts } = this.#options;
    const starter = by === undefined ? prompts.starter(promptId) : { by };
    const runId = this.#session.attribution.during(starter?.by, () => this.#runStarted(starter));
    if (promptId !== undefined) prompts.runs.took(promptId);
    return runId;
  }

  /** Records that the run has ended by itself; `aborted` is pi's own field. Returns whether a run was active. */
  runSettled(aborted?: boolean): boolean {
    if (this.#state.kind !== "running") return false;
    this.#become({ kind: "idle", child: this.#state.child });
    this.#used();
    this.#options.prompts.runs.settle(aborted);
    return true;
  }

  async abortSent(by?: By): Promise<void> {
    await this.#options.prompts.runs.abortSent(by);
  }

  async leftOver(): Promise<void> {
    if (this.isLeftAwaited) await this.startOver();
  }

  nextRun(): Promise<void> {
    return this.#options.prompts.runs.next;
  }

  settled(): Promise<void> {
    return this.#options.prompts.runs.settled;
  }

  cleaned(): Promise<void> {
    return this.#lastCleaned;
  }

  /** Reads pi's state again after a possible change. */
  async refresh(child: Child): Promise<void> {
    const { record, events } = this.#session;
    record.take(readyState((await child.send({ type: "get_state" })).data));
    events.emit("changed");
  }

  /** Prevents further starts and ends a starting child. Resolves when no start is in progress. */
  async refuseStarts(why: WireError): Promise<void> {
    this.#refusal ??= why;
    this.#start?.abort.abort();
    await this.startOver();
  }

  /**
   * Ends the child, if there is one; the session hibernates, and later requests for a child get another one after
   * this end. Resolves when it has been cleaned up.
   */
  async endChild(): Promise<ChildExit | undefined> {
    const { child } = this;
    if (child === undefined) {
      await leavingIn(this.#state)?.left;
      await this.#lastCleaned;
      return undefined;
    }
    const left = Promise.withResolvers<void>();
    this.#become({ kind: "hibernated", leaving: { child, left: left.promise } });
    try {
      return await this.#leave(child);
    } finally {
      const state = this.#state;
      if (state.kind === "hibernated" || state.kind === "starting") this.#state = { ...state, leaving: undefined };
      left.resolve();
    }
  }

  /** Ends the child permanently. `settle` is awaited after its cleanup, before the session becomes closed. */
  async close(settle: () => Promise<void>): Promise<ChildExit | undefined> {
    const { child } = this;
    const leaving = leavingIn(this.#state);
    this.#become({ kind: "closing" });
    await leaving?.left;
    const exit = child === undefined ? undefined : await endAll(child);
    await settle();
    this.#become({ kind: "closed" });
    return exit;
  }

  /**
   * The child belongs to another session from now on. For this session it counts as ended in order; the next child is
   * started when it has `left` this session's file.
   */
  giveAway(child: Child, left: Promise<void>): void {
    if (this.child !== child) return;
    this.#given.add(child);
    this.#lastCleaned = left;
    this.#become({ kind: "hibernated" });
    this.#options.prompts.runs.interrupt();
  }

  /** A former daemon left a child, which may write the file until it is `recovered` or has ended. */
  expectLeft(recovered: Promise<void>): void {
    this.#lastCleaned = recovered;
  }

  /** The child of a former daemon does not answer yet: callers wait for it. `kill` ends it. */
  awaitLeft(restored: Promise<Child | undefined>, kill: () => void): void {
    this.#become({ kind: "starting" });
    const abort = new AbortController();
    abort.signal.addEventListener("abort", kill, { once: true });
    this.isLeftAwaited = true;
    const child = restored.then((found) => {
      this.#start = undefined;
      this.isLeftAwaited = false;
      if (found !== undefined) return found;
      if (this.#state.kind === "starting") this.#become({ kind: "hibernated" });
      throw new WireError("child_exited", "pi ended before it answered this daemon.");
    });
    child.catch(() => {});
    this.#start = { child, abort };
  }

  /** Goes on with the child of a former daemon. `runId`: its run. Its output is handled when `events` say it is ready. */
  restore(child: Child, runId: string | undefined): void {
    if (this.#state.kind !== "starting") this.#become({ kind: "starting" });
    this.#lastCleaned = child.cleaned;
    this.#used();
    this.#become({ kind: "idle", child });
    if (runId !== undefined) this.#become({ kind: "running", child, runId });
    this.#session.events.emit("childReady", child);
    void child.exited.then((exit) => this.#ended(child, exit));
  }

  /** Whether a child of another session can be taken over. */
  get canTake(): boolean {
    if (this.#refusal !== undefined) return false;
    // A hibernating child may write the file until it has left it.
    return this.#state.kind === "crashed" || (this.#state.kind === "hibernated" && this.#state.leaving === undefined);
  }

  /** Takes over a child of another session. Requires {@link canTake}. */
  take(child: Child): void {
    this.#become({ kind: "starting" });
    this.#lastCleaned = child.cleaned;
    this.#used();
    this.#become({ kind: "idle", child });
    this.#session.events.emit("childReady", child);
    // A returning child is being waited for already.
    if (!this.#given.delete(child)) void child.exited.then((exit) => this.#ended(child, exit));
  }

  async #begin(purpose: StartPurpose, signal: AbortSignal): Promise<Child> {
    try {
      const child = await this.#started(signal);
      await this.#resume(child, purpose, signal);
      return child;
    } catch (error) {
      if (this.#state.kind === "starting") {
        const exit = error instanceof WireError ? (error.data["exit"] as ChildExit | undefined) : undefined;
        const isRefused = this.#refusal !== undefined || (error instanceof WireError && refusals.has(error.kind));
        this.#become({ kind: isRefused ? "hibernated" : "crashed", exit });
      }
      throw this.#refusal ?? error;
    } finally {
      this.#start = undefined;
    }
  }

  async #started(signal: AbortSignal): Promise<Child> {
    const leaving = leavingIn(this.#state);
    this.#become({ kind: "starting", leaving });
    // Two children must never write the same file.
    await leaving?.left;
    await this.#lastCleaned;
    if (this.#refusal !== undefined) throw this.#refusal;
    const child = await this.#startChild(signal);
    this.#lastCleaned = child.cleaned;
    if (this.#refusal !== undefined) {
      await child.stop();
      throw this.#refusal;
    }
    this.#used();
    this.#become({ kind: "idle", child });
    this.#session.events.emit("childReady", child);
    void child.exited.then((exit) => this.#ended(child, exit));
    return child;
  }

  async #startChild(signal: AbortSignal): Promise<Child> {
    const { record, events, log } = this.#session;
    const { custody, initialContext, backfill, source } = this.#options;
    await custody.begin(record.stored.generation + 1);
    const generation = record.nextGeneration();
    events.emit("childStarting");
    try {
      const { environment, mcpServers } = record;
      const own = childSinks(this.#session, generation);
      const sinks = { ...own, signal, environment, mcpServers, onPi: () => this.#startRate.count() };
      const { child, ready } = await source.start(record.stored, sinks, log);
      await initialContext.give(child, generation, signal);
      custody.started(child, generation);
      record.take(ready);
      // The child of a killed daemon may have written until the end.
      if (generation === this.#firstGeneration) await backfill.runIfLost(this.file);
      return child;
    } catch (error) {
      await custody.notStarted();
      throw error;
    }
  }

  /** A silent pi is ended together with its start, when no caller waits for it. */
  async #resume(child: Child, purpose: StartPurpose, signal: AbortSignal): Promise<void> {
    const abandon = (): void => void child.stop();
    signal.addEventListener("abort", abandon, { once: true });
    const work: Promise<void>[] = [];
    try {
      this.#session.events.emit("childStarted", { child, purpose, waitUntil: (added) => void work.push(added) });
      await Promise.all(work);
    } finally {
      signal.removeEventListener("abort", abandon);
    }
  }

  #runStarted(starter: RunStarter | undefined): string {
    const state = this.#state;
    if (state.kind === "running") return state.runId;
    const { runs } = this.#options.prompts;
    const told = this.#session.journal.findSaid("run/started", () => true)?.["runId"];
    const runId = typeof told === "string" ? told : uuidv7();
    if (state.kind === "idle") {
      this.#used();
      runs.begin(runId, starter);
      this.#become({ kind: "running", child: state.child, runId });
    } else if (state.kind === "hibernated" && state.leaving !== undefined && runs.runId === undefined) {
      // Between pi's last answer and the end of its stdin, the run ends with the child.
      if (state.leaving.child.state.kind !== "exited") runs.begin(runId, starter);
    }
    return runId;
  }

  async #leave(child: Child): Promise<ChildExit> {
    const { events, record } = this.#session;
    events.emit("childLeaving");
    return await this.#options.custody.leave(record.stored.generation, () => endAll(child));
  }

  #ended(child: Child, exit: ChildExit): void {
    if (this.#given.has(child)) return;
    const state = this.#state;
    if (state.kind === "idle" || state.kind === "running") {
      // The current run belongs to the other child.
      if (state.child !== child) return;
      this.#become({ kind: exit.expected ? "hibernated" : "crashed", exit });
    } else if (state.kind === "hibernated" && state.leaving?.child === child) {
      this.#become({ ...state, exit });
    }
    const hadRun = this.#options.prompts.runs.interrupt();
    this.#session.events.emit("childEnded", { child, exit, hadRun });
  }

  #used(): void {
    this.#uses += 1;
    this.#lastUsedAt = performance.now();
  }

  #become(state: LifeState): void {
    const { events, log, record } = this.#session;
    if (!mayBecome(this.#state.kind, state.kind)) {
      log.error({ from: this.#state.kind, to: state.kind }, "invalid transition of a session's state");
      return;
    }
    this.#state = state;
    record.touch();
    events.emit("changed");
    events.emit("stateChanged", state);
  }
}

/** If no start was made, or the file belongs to another session, nothing has crashed. */
const refusals: ReadonlySet<ErrorName> = new Set([
  "overloaded",
  "shutting_down",
  "session_closed",
  "session_in_use",
  "session_file_unusable",
  "foreign_write",
]);

function leavingIn(state: LifeState): Leaving | undefined {
  return state.kind === "hibernated" || state.kind === "starting" ? state.leaving : undefined;
}

async function endAll(child: Child): Promise<ChildExit> {
  const exit = await child.stop();
  await child.cleaned;
  return exit;
}
