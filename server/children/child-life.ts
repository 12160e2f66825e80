import type { Logger } from "pino";
import { v7 as uuidv7 } from "uuid";
import { type ErrorName, WireError } from "../../protocol/errors.ts";
import type { ChildExit } from "../../protocol/session.ts";
import type { StartPurpose } from "../core/session-core.ts";
import { mayBecome, type SessionState } from "../core/session-state.ts";
import type { Child } from "../pi/child.ts";
import type { RunStarter, Runs } from "../prompts/runs.ts";
import { StartRateLimit, type StartRateLimits } from "./start-rate-limit.ts";

export interface ChildLifeOptions {
  readonly runs: Runs;
  readonly startRate: StartRateLimits;
  /**
   * Starts a child of the next generation; calls `onPi` for each pi that is started or taken. An aborted signal
   * cancels the start.
   */
  readonly start: (signal: AbortSignal, onPi: () => void) => Promise<Child>;
  /** A child is ready and not in use yet. */
  readonly onReady: (child: Child) => void;
  /** Sends a new child the messages that wait for it. */
  readonly resume: (child: Child, purpose: StartPurpose) => Promise<void>;
  /** A ready child has ended; the state is updated already. `hadRun`: during a run. */
  readonly onEnded: (child: Child, exit: ChildExit, hadRun: boolean) => void;
  /** Ends a hibernating child by calling `end`. No other child is started before it resolves. */
  readonly leave: <T>(end: () => Promise<T>) => Promise<T>;
  /** The state has changed. */
  readonly onChange: () => void;
  readonly log: Logger;
}

/** The children of one session, at most one at a time: their starts, ends and runs. */
export class ChildLife {
  readonly #options: ChildLifeOptions;
  readonly #runs: Runs;
  readonly #startRate: StartRateLimit;
  #state: SessionState = { kind: "hibernated" };
  #starting: Promise<Child> | undefined;
  /** Resolves when the last child has been cleaned up. */
  #lastCleaned: Promise<void> = Promise.resolve();
  /** Children that belong to other sessions now. */
  readonly #given = new WeakSet<Child>();
  /** Resolves when the last hibernating child has ended. */
  #left: Promise<unknown> = Promise.resolve();
  /** Number of such ends in progress. */
  #leaving = 0;
  #asleep: Child | undefined;
  #hadRun = false;
  #uses = 0;
  #lastUsedAt = performance.now();
  #abandonStart = new AbortController();
  /** Why no child may be started any more. Set before anything is awaited. */
  #ending: WireError | undefined;

  constructor(options: ChildLifeOptions) {
    this.#options = options;
    this.#runs = options.runs;
    this.#startRate = new StartRateLimit(options.startRate);
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

  /** Number of runs so far. */
  get runsStarted(): number {
    return this.#runs.started;
  }

  /** Whether no child may be started any more. */
  get isEnding(): boolean {
    return this.#ending !== undefined;
  }

  /** Number of uses of the child: requests for it, and starts and ends of runs. */
  get uses(): number {
    return this.#uses;
  }

  /** Time of the last use, on the clock of `performance.now`. */
  get lastUsedAt(): number {
    return this.#lastUsedAt;
  }

  /**
   * Returns the child; starts one if necessary. Throws errors of starting, the reason why no child may be started,
   * and `overloaded` after too many starts.
   */
  awake(purpose: StartPurpose): Promise<Child> {
    if (this.#ending !== undefined) return Promise.reject(this.#ending);
    this.#used();
    const { child } = this;
    if (child !== undefined) return Promise.resolve(child);
    const refusal = this.#starting === undefined ? this.#startRate.refusal() : undefined;
    if (refusal !== undefined) return Promise.reject(refusal);
    this.#starting ??= this.#start(purpose).finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  /** Resolves when no start is in progress, whatever its outcome. */
  async startOver(): Promise<void> {
    await this.#starting?.catch(() => {});
  }

  /** Records an active run and returns its id. A run that is recorded already stays. */
  runStarted(starter?: RunStarter): string {
    if (this.#state.kind === "running") return this.#state.runId;
    const runId = uuidv7();
    if (this.#asleep !== undefined && this.#state.kind === "hibernated" && !this.#hadRun) {
      // Between pi's last answer and the end of its stdin, the run ends with the child.
      this.#hadRun = true;
      this.#runs.begin(runId, starter);
    }
    if (this.#state.kind !== "idle") return runId;
    this.#used();
    this.#hadRun = true;
    this.#runs.begin(runId, starter);
    this.#become({ kind: "running", child: this.#state.child, runId });
    return runId;
  }

  /** Records that the run has ended by itself; `aborted` is pi's own field. Returns whether a run was active. */
  runSettled(aborted?: boolean): boolean {
    if (this.#state.kind !== "running") return false;
    this.#become({ kind: "idle", child: this.#state.child });
    this.#used();
    this.#hadRun = false;
    this.#runs.settle(aborted);
    return true;
  }

  /** Resolves when the next run begins. */
  nextRun(): Promise<void> {
    return this.#runs.next;
  }

  /** Resolves when no run is active. */
  settled(): Promise<void> {
    return this.#runs.settled;
  }

  /** Resolves when the last child has been cleaned up. */
  cleaned(): Promise<void> {
    return this.#lastCleaned;
  }

  /** Prevents further starts and ends a starting child. Resolves when no start is in progress. */
  async refuseStarts(why: WireError): Promise<void> {
    this.#ending ??= why;
    this.#abandonStart.abort();
    await this.startOver();
  }

  /**
   * Ends the child, if there is one; the session hibernates, and later requests for a child get another one after
   * this end. Resolves when it has been cleaned up.
   */
  async endChild(): Promise<ChildExit | undefined> {
    const { child } = this;
    if (child === undefined) {
      await this.#left;
      await this.#lastCleaned;
      return undefined;
    }
    this.#asleep = child;
    this.#become({ kind: "hibernated" });
    this.#leaving += 1;
    const left = this.#options
      .leave(() => endAll(child))
      .finally(() => {
        this.#leaving -= 1;
      });
    this.#left = left.catch(() => {});
    return await left;
  }

  /** Ends the child permanently. `settle` is awaited after its cleanup, before the session becomes closed. */
  async close(settle: () => Promise<void>): Promise<ChildExit | undefined> {
    const { child } = this;
    this.#become({ kind: "closing" });
    await this.#left;
    const exit = child === undefined ? undefined : await endAll(child);
    await settle();
    this.#become({ kind: "closed" });
    return exit;
  }

  #used(): void {
    this.#uses += 1;
    this.#lastUsedAt = performance.now();
  }

  /**
   * The child belongs to another session from now on. For this session it counts as ended in order; the next child is
   * started when it has `left` this session's file.
   */
  giveAway(child: Child, left: Promise<void>): void {
    if (this.child !== child) return;
    this.#given.add(child);
    this.#lastCleaned = left;
    this.#hadRun = false;
    this.#become({ kind: "hibernated" });
    this.#runs.interrupt();
  }

  /** Whether a child of another session can be taken over. */
  get canTake(): boolean {
    const isAsleep = this.#state.kind === "hibernated" || this.#state.kind === "crashed";
    // The former child may write the file until it has ended.
    return this.#ending === undefined && isAsleep && this.#asleep === undefined && this.#leaving === 0;
  }

  /** Takes over a child of another session. Requires {@link canTake}. */
  take(child: Child): void {
    this.#become({ kind: "starting" });
    this.#lastCleaned = child.cleaned;
    this.#hadRun = false;
    this.#used();
    this.#become({ kind: "idle", child });
    this.#options.onReady(child);
    // A returning child is being waited for already.
    if (!this.#given.delete(child)) void child.exited.then((exit) => this.#ended(child, exit));
  }

  async #start(purpose: StartPurpose): Promise<Child> {
    this.#become({ kind: "starting" });
    try {
      this.#abandonStart = new AbortController();
      // Two children must never write the same file.
      await this.#left;
      await this.#lastCleaned;
      if (this.#ending !== undefined) throw this.#ending;
      const child = await this.#options.start(this.#abandonStart.signal, () => this.#startRate.count());
      this.#lastCleaned = child.cleaned;
      if (this.#ending !== undefined) {
        await child.stop();
        throw this.#ending;
      }
      this.#hadRun = false;
      this.#used();
      this.#become({ kind: "idle", child });
      this.#options.onReady(child);
      void child.exited.then((exit) => this.#ended(child, exit));
      await this.#resume(child, purpose);
      return child;
    } catch (error) {
      if (this.#state.kind === "starting") {
        const exit = error instanceof WireError ? (error.data["exit"] as ChildExit | undefined) : undefined;
        const isRefused = this.#ending !== undefined || (error instanceof WireError && refusals.has(error.kind));
        this.#become({ kind: isRefused ? "hibernated" : "crashed", exit });
      }
      throw this.#ending ?? error;
    }
  }

  /** A silent pi is ended together with its start, when no caller waits for it. */
  async #resume(child: Child, purpose: StartPurpose): Promise<void> {
    const { signal } = this.#abandonStart;
    const abandon = (): void => void child.stop();
    signal.addEventListener("abort", abandon, { once: true });
    try {
      await this.#options.resume(child, purpose);
    } finally {
      signal.removeEventListener("abort", abandon);
    }
  }

  #ended(child: Child, exit: ChildExit): void {
    if (this.#given.has(child)) return;
    const { child: current } = this;
    if (current !== undefined && current !== child) {
      // The current run belongs to the other session.
      if (this.#asleep === child) this.#asleep = undefined;
      return;
    }
    const kind = exit.expected ? "hibernated" : "crashed";
    if (this.child === child || (this.#asleep === child && this.#state.kind === "hibernated")) {
      this.#become({ kind: this.#asleep === child ? "hibernated" : kind, exit });
    }
    this.#asleep = undefined;
    this.#runs.interrupt();
    this.#options.onEnded(child, exit, this.#hadRun);
  }

  #become(state: SessionState): void {
    if (!mayBecome(this.#state.kind, state.kind)) {
      this.#options.log.error({ from: this.#state.kind, to: state.kind }, "invalid transition of a session's state");
      return;
    }
    this.#state = state;
    this.#options.onChange();
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

async function endAll(child: Child): Promise<ChildExit> {
  const exit = await child.stop();
  await child.cleaned;
  return exit;
}
