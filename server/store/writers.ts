import type { DatabaseSync } from "node:sqlite";
import type { Parameters } from "./connection.ts";
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
  /** The main thread makes transactions that take less than this, also while there is a thread. Default: a fiftieth of `maxLocalMs`. */
  readonly maxQuickMs?: number;
  /** It ends after this time without a write. */
  readonly maxIdleThreadMs: number;
  /** Receives the reason of an unexpected end of the thread. */
  readonly onFailure: (error: unknown) => void;
}

/** Long enough that a short burst, such as the start of some sessions, does not start a thread. */
const windowMs = 5_000;

/** A request above these limits is not expected to be quick. */
const quick = { maxChanges: 16, maxBytes: 64 * 1024 };

/** The weight of the newest request in the mean. While the thread writes, the mean falls, so that this is tried again. */
const [meanWeight, forgetting] = [1 / 8, 1 / 64];

/** The thread takes one request after so many in the main thread, because it makes the checkpoints of the WAL. */
const maxLocalInRow = 64;

/** After an unexpected end, no other thread is started for this time. */
const threadPauseMs = 60_000;

/**
 * Writes in the main thread while the load is low, which saves the memory of a second thread, and in a thread as soon
 * as writing would delay the event loop noticeably. A quick transaction then stays in the main thread, because the way to
 * the thread and back takes longer. There is one writer at a time.
 */
export class Writers implements WriterPort {
  readonly #options: WritersOptions;
  readonly #local: Writer;
  #thread: WriterThread | undefined;
  /** Names the start of {@link #thread}. */
  #start: symbol | undefined;
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
  readonly #maxQuickMs: number;
  #localInRow = 0;
  /** How long the newest requests took in the main thread, as a moving mean. */
  #meanLocalMs = 0;
  #lastRequestAt = 0;
  #idle: NodeJS.Timeout | undefined;

  constructor(options: WritersOptions) {
    this.#options = options;
    this.#local = options.local;
    this.#commits = options.local.commits;
    this.#maxQuickMs = options.maxQuickMs ?? options.maxLocalMs / 50;
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
    const isQuick = this.#isQuick(request);
    if (this.#isThreadReady && !(isQuick && this.#localInRow < maxLocalInRow)) {
      this.#localInRow = 0;
      this.#meanLocalMs *= 1 - forgetting;
      this.#thread?.request(request, (outcome) => this.#settle(outcome));
    } else {
      this.#localInRow += 1;
      const outcome = this.#local.take(request);
      this.#noteLoad(performance.now() - this.#lastRequestAt, isQuick);
      // The thread's connection is not trusted either, and would not recover a writer that is not its own.
      if (outcome.failure?.kind === "broken" && this.#thread !== undefined) this.#endThread();
      this.#settle(outcome);
    }
  }

  #isQuick(request: WriterRequest): boolean {
    if (request.kind !== "commit" || this.#hasThreadFailed) return false;
    if (this.#meanLocalMs >= this.#maxQuickMs) return false;
    const { changes } = request;
    if (changes.length === 0 || changes.length > quick.maxChanges) return false;
    let bytes = 0;
    for (const { parameters } of changes) for (const parameter of parameters) bytes += lengthOf(parameter);
    return bytes <= quick.maxBytes;
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

  #noteLoad(ms: number, isQuick: boolean): void {
    const now = performance.now();
    this.#meanLocalMs += (ms - this.#meanLocalMs) * meanWeight;
    if (isQuick && ms < this.#maxQuickMs) return;
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
    const start = Symbol("start");
    this.#start = start;
    try {
      this.#thread = startThread({
        onReady: () => {
          // It may have been ended meanwhile.
          if (this.#start !== start) return;
          this.#isThreadReady = true;
          this.#local.makesCheckpoints = false;
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
    this.#start = undefined;
    this.#local.makesCheckpoints = true;
  }

  /** From now on the main thread writes, including the thread's last request, unless the database has it. */
  #threadEnded(why: unknown): void {
    clearInterval(this.#idle);
    this.#isThreadReady = false;
    this.#thread = undefined;
    this.#start = undefined;
    this.#noThreadBefore = performance.now() + threadPauseMs;
    this.#local.makesCheckpoints = true;
    if (this.#hasThreadFailed) this.#local.markBroken();
    // A requested end with no write left is not a failure.
    if (!this.#isEndWanted || this.#awaited !== undefined) this.#options.onFailure(why);
    if (this.#awaited !== undefined) this.#settle(this.#again(this.#awaited.request));
  }

  #again(request: WriterRequest): WriterOutcome {
    try {
      const { commits } = this.#local;
      if (request.kind === "commit" && commits > this.#commits)
        return this.#local.marked(commits, request.changes, request.isSynced);
    } catch {
      // It cannot be read: the retry reports the error.
    }
    return this.#local.take(request);
  }
}

function lengthOf(parameter: Parameters[number]): number {
  return typeof parameter === "string" || parameter instanceof Uint8Array ? parameter.length : 8;
}
