import type { Logger } from "pino";
import { v7 as uuidv7 } from "uuid";
import { type ErrorName, WireError } from "../../protocol/errors.ts";
import type { ChildExit } from "../../protocol/session.ts";
import type { Child } from "../pi/child.ts";
import type { RunStarter, Runs } from "./runs.ts";
import { mayBecome, type SessionState } from "./session-state.ts";

/** What a child is started for. One for a prompt gets the held pushes without handing them over: the prompt goes first. */
export type StartPurpose = "work" | "prompt";

export interface ChildLifeOptions {
  readonly runs: Runs;
  /** Starts a child of the next generation. An aborted signal abandons the start. */
  readonly start: (signal: AbortSignal) => Promise<Child>;
  /** A child is ready, and nobody else has it yet. */
  readonly onReady: (child: Child) => void;
  /** Brings to a child that has just started what waits for it. */
  readonly resume: (child: Child, purpose: StartPurpose) => Promise<void>;
  /** A child that was ready has ended; the state says so already. */
  readonly onEnded: (child: Child, exit: ChildExit) => void;
  /** The state has changed. */
  readonly onChange: () => void;
  readonly log: Logger;
}

/** The children of one session, of which there is at most one: when it is started, how it ends, and the runs in it. */
export class ChildLife {
  readonly #options: ChildLifeOptions;
  readonly #runs: Runs;
  #state: SessionState = { kind: "hibernated" };
  #starting: Promise<Child> | undefined;
  /** Resolves when nothing is left of the last child. */
  #lastCleaned: Promise<void> = Promise.resolve();
  /** Children that are other sessions' by now. */
  readonly #given = new WeakSet<Child>();
  #abandonStart = new AbortController();
  /** Why no child may be started any more. Set before anything is awaited. */
  #ending: WireError | undefined;

  constructor(options: ChildLifeOptions) {
    this.#options = options;
    this.#runs = options.runs;
  }

  get state(): SessionState {
    return this.#state;
  }

  /** The child, if there is one that can be used. */
  get child(): Child | undefined {
    return this.#state.kind === "idle" || this.#state.kind === "running" ? this.#state.child : undefined;
  }

  get runId(): string | undefined {
    return this.#state.kind === "running" ? this.#state.runId : undefined;
  }

  /** How many runs there have been. */
  get runsStarted(): number {
    return this.#runs.started;
  }

  /** Whether no child may be started any more. */
  get isEnding(): boolean {
    return this.#ending !== undefined;
  }

  /** The child; one is started if there is none. Throws what starting can throw, and why no child may be started. */
  awake(purpose: StartPurpose): Promise<Child> {
    if (this.#ending !== undefined) return Promise.reject(this.#ending);
    const { child } = this;
    if (child !== undefined) return Promise.resolve(child);
    this.#starting ??= this.#start(purpose).finally(() => {
      this.#starting = undefined;
    });
    return this.#starting;
  }

  /** Resolves when no start is under way, whatever came of it. */
  async startOver(): Promise<void> {
    await this.#starting?.catch(() => {});
  }

  /** Notes that a run is on, and gives its id. One that is noted already stays. */
  runStarted(starter?: RunStarter): string {
    if (this.#state.kind === "running") return this.#state.runId;
    const runId = uuidv7();
    if (this.#state.kind !== "idle") return runId;
    this.#runs.begin(runId, starter);
    this.#become({ kind: "running", child: this.#state.child, runId });
    return runId;
  }

  /** Notes that the run has ended by itself; `aborted` is pi's own word. Gives whether one was on. */
  runSettled(aborted?: boolean): boolean {
    if (this.#state.kind !== "running") return false;
    this.#become({ kind: "idle", child: this.#state.child });
    this.#runs.settle(aborted);
    return true;
  }

  /** Resolves when the next run begins. */
  nextRun(): Promise<void> {
    return this.#runs.next;
  }

  /** Resolves when no run is on. */
  settled(): Promise<void> {
    return this.#runs.settled;
  }

  /** Resolves when nothing is left of the last child. */
  cleaned(): Promise<void> {
    return this.#lastCleaned;
  }

  /** From now on no child is started, and one that starts is ended. Resolves when no start is under way. */
  async refuseStarts(why: WireError): Promise<void> {
    this.#ending ??= why;
    this.#abandonStart.abort();
    await this.startOver();
  }

  /** Ends the child, if there is one. Resolves when nothing of it is left. */
  async endChild(): Promise<ChildExit | undefined> {
    const { child } = this;
    if (child === undefined) {
      await this.#lastCleaned;
      return undefined;
    }
    return await endAll(child);
  }

  /** Ends the child for good. `settle` is awaited when nothing of it is left, before the session says to be closed. */
  async close(settle: () => Promise<void>): Promise<ChildExit | undefined> {
    const { child } = this;
    this.#become({ kind: "closing" });
    const exit = child === undefined ? undefined : await endAll(child);
    await settle();
    this.#become({ kind: "closed" });
    return exit;
  }

  /** The child is another session's from now on. Here it is as one that has ended in order. */
  giveAway(child: Child): void {
    if (this.child !== child) return;
    this.#given.add(child);
    this.#lastCleaned = Promise.resolve();
    this.#become({ kind: "hibernated" });
    this.#runs.interrupt();
  }

  /** Whether a child of another session can be taken over. */
  get canTake(): boolean {
    return this.#ending === undefined && (this.#state.kind === "hibernated" || this.#state.kind === "crashed");
  }

  /** Takes over a child of another session. Only where {@link canTake} says so. */
  take(child: Child): void {
    this.#become({ kind: "starting" });
    this.#lastCleaned = child.cleaned;
    this.#become({ kind: "idle", child });
    this.#options.onReady(child);
    // One that comes back is waited for already.
    if (!this.#given.delete(child)) void child.exited.then((exit) => this.#ended(child, exit));
  }

  async #start(purpose: StartPurpose): Promise<Child> {
    this.#become({ kind: "starting" });
    try {
      this.#abandonStart = new AbortController();
      const child = await this.#options.start(this.#abandonStart.signal);
      this.#lastCleaned = child.cleaned;
      if (this.#ending !== undefined) {
        await child.stop();
        throw this.#ending;
      }
      this.#become({ kind: "idle", child });
      this.#options.onReady(child);
      void child.exited.then((exit) => this.#ended(child, exit));
      await this.#options.resume(child, purpose);
      return child;
    } catch (error) {
      if (this.#state.kind === "starting") {
        const exit = error instanceof WireError ? (error.data["exit"] as ChildExit | undefined) : undefined;
        // Where the session's file is another's there was nothing that could crash.
        this.#become({ kind: error instanceof WireError && refusals.has(error.kind) ? "hibernated" : "crashed", exit });
      }
      throw this.#ending ?? error;
    }
  }

  #ended(child: Child, exit: ChildExit): void {
    if (this.#given.has(child)) return;
    if (this.child === child) this.#become({ kind: exit.expected ? "hibernated" : "crashed", exit });
    this.#runs.interrupt();
    this.#options.onEnded(child, exit);
  }

  #become(state: SessionState): void {
    if (!mayBecome(this.#state.kind, state.kind)) {
      this.#options.log.error({ from: this.#state.kind, to: state.kind }, "a session may not go this way");
      return;
    }
    this.#state = state;
    this.#options.onChange();
  }
}

const refusals: ReadonlySet<ErrorName> = new Set(["session_in_use", "session_file_unusable", "foreign_write"]);

async function endAll(child: Child): Promise<ChildExit> {
  const exit = await child.stop();
  await child.cleaned;
  return exit;
}
