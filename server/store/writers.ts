import type { DatabaseSync } from "node:sqlite";
import type { Writer, WriterOutcome, WriterPort, WriterRequest } from "./writer.ts";

/** Callbacks of a thread. */
export interface ThreadCallbacks {
  /** It accepts requests from now on. */
  readonly onReady: () => void;
  /** It ended unexpectedly, or could not be started. The last request has no outcome. */
  readonly onEnd: (why: Error) => void;
}

/** A writer in another thread, seen from the main thread. */
export interface WriterThread extends WriterPort {
  /** Blocks the event loop until the pending request settles; false on timeout. */
  finish(maxMs: number): boolean;
  /** Closes its connection, and ends. No request may be pending. */
  close(): void;
}

export type StartThread = (callbacks: ThreadCallbacks) => WriterThread;

export interface WritersOptions {
  readonly local: Writer;
  /** Undefined: no writing thread; the main thread writes. */
  readonly startThread: StartThread | undefined;
  /** The thread is started when writing has taken this much of {@link windowMs} in the main thread. */
  readonly maxLocalMs: number;
  /** It ends after this time without a write. */
  readonly maxIdleThreadMs: number;
  /** Receives the reason of an unexpected end of the thread. */
  readonly onFailure: (error: unknown) => void;
}

/** Long enough that a short burst, such as the start of some sessions, does not start a thread. */
const windowMs = 5_000;

/** After an unexpected end, no other thread is started for this time. */
const threadPauseMs = 60_000;

/**
 * Writes in the main thread while the load is low, which saves the memory of a second thread, and in a thread as soon
 * as writing would delay the event loop noticeably. There is one writer at a time.
 */
export class Writers implements WriterPort {
  readonly #options: WritersOptions;
  readonly #local: Writer;
  #thread: WriterThread | undefined;
  #isThreadReady = false;
  /** The thread met a system error: no existing connection is trusted after that. */
  #hasThreadFailed = false;
  #isEndWanted = false;
  #noThreadBefore = 0;
  #awaited: { readonly request: WriterRequest; readonly onOutcome: (outcome: WriterOutcome) => void } | undefined;
  /** The number of the newest known commit. */
  #commits: number;
  #windowFrom = 0;
  #localMs = 0;
  #lastRequestAt = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: WritersOptions) {
    this.#options = options;
    this.#local = options.local;
    this.#commits = options.local.commits;
  }

  /** The main thread's connection: it reads, also while the thread writes. */
  get connection(): DatabaseSync {
    return this.#local.connection;
  }

  /** The number of the newest commit. */
  get commits(): number {
    return this.#commits;
  }

  /** Whether the writing thread is used. */
  get isThreaded(): boolean {
    return this.#isThreadReady;
  }

  request(request: WriterRequest, onOutcome: (outcome: WriterOutcome) => void): void {
    this.#awaited = { request, onOutcome };
    this.#lastRequestAt = performance.now();
    if (this.#isThreadReady) this.#thread?.request(request, (outcome) => this.#settle(outcome));
    else {
      const outcome = this.#local.take(request);
      this.#noteLoad(performance.now() - this.#lastRequestAt);
      this.#settle(outcome);
    }
  }

  /** Blocks the event loop until the pending request settles; false on timeout. */
  finish(maxMs: number): boolean {
    return this.#thread?.finish(maxMs) ?? true;
  }

  close(): void {
    this.#endThread();
    this.#local.close();
  }

  #settle(outcome: WriterOutcome): void {
    const awaited = this.#awaited;
    this.#awaited = undefined;
    if (outcome.commits !== undefined) this.#commits = outcome.commits;
    if (outcome.failure?.kind === "broken") this.#hasThreadFailed ||= this.#isThreadReady;
    awaited?.onOutcome(outcome);
  }

  #noteLoad(ms: number): void {
    const now = performance.now();
    if (now - this.#windowFrom > windowMs) {
      this.#windowFrom = now;
      this.#localMs = 0;
    }
    this.#localMs += ms;
    if (this.#localMs >= this.#options.maxLocalMs) this.#startThread(now);
  }

  #startThread(now: number): void {
    const { startThread } = this.#options;
    if (startThread === undefined || this.#thread !== undefined || now < this.#noThreadBefore) return;
    try {
      this.#thread = startThread({
        onReady: () => {
          this.#isThreadReady = true;
        },
        onEnd: (why) => this.#threadEnded(why),
      });
      this.#watchIdle();
    } catch (error) {
      this.#threadEnded(error);
    }
  }

  #watchIdle(): void {
    const { maxIdleThreadMs } = this.#options;
    this.#idle = setInterval(() => {
      const isBusy = this.#awaited !== undefined || performance.now() - this.#lastRequestAt < maxIdleThreadMs;
      if (!isBusy && this.#isThreadReady && !this.#hasThreadFailed) this.#endThread();
    }, maxIdleThreadMs).unref();
  }

  #endThread(): void {
    clearInterval(this.#idle);
    this.#isThreadReady = false;
    this.#isEndWanted = true;
    this.#thread?.close();
    this.#isEndWanted = false;
    this.#thread = undefined;
  }

  /** From now on the main thread writes, including the thread's last request, unless the database has it. */
  #threadEnded(why: unknown): void {
    clearInterval(this.#idle);
    this.#isThreadReady = false;
    this.#thread = undefined;
    this.#noThreadBefore = performance.now() + threadPauseMs;
    if (this.#hasThreadFailed) this.#local.markBroken();
    // A requested end with no write left is not a failure.
    if (!this.#isEndWanted || this.#awaited !== undefined) this.#options.onFailure(why);
    if (this.#awaited !== undefined) this.#settle(this.#again(this.#awaited.request));
  }

  #again(request: WriterRequest): WriterOutcome {
    try {
      const { commits } = this.#local;
      if (request.kind === "commit" && commits > this.#commits) return { commits };
    } catch {
      // It cannot be read: the retry reports the error.
    }
    return this.#local.take(request);
  }
}
