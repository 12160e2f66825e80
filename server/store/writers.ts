import type { DatabaseSync } from "node:sqlite";
import type { Writer, WriterOutcome, WriterPort, WriterRequest } from "./writer.ts";

/** What a thread is started with. */
export interface ThreadCallbacks {
  /** It takes requests from now on. */
  readonly onReady: () => void;
  /** It has ended unasked, or could not be started. What was asked of it last has no outcome. */
  readonly onEnd: (why: Error) => void;
}

/** A writer in another thread, as it is seen from here. */
export interface WriterThread extends WriterPort {
  /** Waits so long for the outcome of what it was asked, and lets nothing else happen meanwhile. False: it took longer. */
  finish(maxMs: number): boolean;
  /** Closes its connection, and ends. Nothing that was asked of it may be under way. */
  close(): void;
}

export type StartThread = (callbacks: ThreadCallbacks) => WriterThread;

export interface WritersOptions {
  readonly local: Writer;
  /** Undefined: there is no other thread, and all is written here. */
  readonly startThread: StartThread | undefined;
  /** The thread is started when writing has taken so much of {@link windowMs} here. */
  readonly maxLocalMs: number;
  /** It ends when nothing was written for so long. */
  readonly maxIdleThreadMs: number;
  /** Hears that the thread ended unasked. */
  readonly onFailure: (error: unknown) => void;
}

/** Long enough for a burst, such as the start of some sessions, to be none that lasts. */
const windowMs = 5_000;

/** After a thread that ended unasked no other is started for so long. */
const threadPauseMs = 60_000;

/**
 * Writes here as long as little is written, so that a quiet daemon has no memory of a second thread; and in a thread of its
 * own as soon as writing takes a share of the event loop's time that others would feel. There is one writer at a time.
 */
export class Writers implements WriterPort {
  readonly #options: WritersOptions;
  readonly #local: Writer;
  #thread: WriterThread | undefined;
  #isThreadReady = false;
  /** An error of the system was met by the thread: nobody else's connection is to be trusted after that. */
  #hasThreadFailed = false;
  #noThreadBefore = 0;
  #awaited: { readonly request: WriterRequest; readonly onOutcome: (outcome: WriterOutcome) => void } | undefined;
  /** The newest commit that is known of. */
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

  /** The connection of this thread: it reads, also while the other one writes. */
  get connection(): DatabaseSync {
    return this.#local.connection;
  }

  /** The number of the newest commit. */
  get commits(): number {
    return this.#commits;
  }

  /** Whether a thread of its own writes. */
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

  /** Waits so long for the outcome that is awaited, and lets nothing else happen meanwhile. False: it took longer. */
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
    this.#thread?.close();
    this.#thread = undefined;
  }

  /** From here on it is written here, and what the thread was asked last as well, unless the database has it. */
  #threadEnded(why: unknown): void {
    clearInterval(this.#idle);
    this.#isThreadReady = false;
    this.#thread = undefined;
    this.#noThreadBefore = performance.now() + threadPauseMs;
    if (this.#hasThreadFailed) this.#local.distrust();
    this.#options.onFailure(why);
    if (this.#awaited !== undefined) this.#settle(this.#again(this.#awaited.request));
  }

  #again(request: WriterRequest): WriterOutcome {
    try {
      const { commits } = this.#local;
      if (request.kind === "commit" && commits > this.#commits) return { commits };
    } catch {
      // It cannot be read: the attempt says what is wrong.
    }
    return this.#local.take(request);
  }
}
