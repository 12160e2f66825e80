import { WireError } from "../../protocol/errors.ts";
import { limits } from "../configuration/limits.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import { Histogram } from "../lib/histogram.ts";
import { type ChangeLog, LogAppender } from "./change-log.ts";
import type { CommitMark } from "./commit-mark.ts";
import { type Connect, connect, type Parameters, Statement } from "./connection.ts";
import { migrate } from "./migrations.ts";
import { type StoreHealth, tooMuchWaits, Unwritten, type UnwrittenLimits, type Write } from "./unwritten.ts";
import { type QueueLimits, WriteQueue } from "./write-queue.ts";
import { Writer, type WriterFailure, type WriterOutcome, type WriterRequest } from "./writer.ts";
import { type StartThread, Writers } from "./writers.ts";
import { WritingThread } from "./writing-thread.ts";

export interface DatabaseOptions {
  /** The file with the number of the newest commit; without it a lost end of the WAL is not detected. */
  readonly mark?: CommitMark;
  /** The log of changes from which a damaged database is rebuilt. */
  readonly log?: ChangeLog;
  /** Called when the store works again. */
  readonly onRecovered?: () => void;
  /**
   * Whether the file is still at its path. Otherwise nothing is stored, because no later daemon could find it.
   * Default: always.
   */
  readonly isHeld?: (() => boolean) | undefined;
  /** A separate thread writes as soon as writing has taken this much of 5 s of the main thread. Default: 100. */
  readonly maxLocalMs?: number;
  /** That thread ends after this time without a write. Default: 60,000. */
  readonly maxIdleThreadMs?: number;
  /** Default: the limits of the configuration. */
  readonly limits?: QueueLimits & UnwrittenLimits;
  /** For tests. Disables the writing thread. */
  readonly connect?: Connect;
  /** For tests. */
  readonly startThread?: StartThread;
}

/** How long a change that no answer waits for waits for another write's transaction. */
const maxKeepDelayMs = 5;

/** How long a commit may be unsynced. */
const maxUnsyncedMs = 1_000;

const maxFlushMs = 1_000;
const notifyRetryMs = 1_000;

/** How long a shutdown waits for a disk that does not respond. */
export const maxCloseMs = 30_000;
const commitBounds = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30];

/**
 * The embedded store: SQLite in WAL mode. Writes of one turn of the event loop share one transaction and one sync,
 * and so do writes that arrive during another transaction. A transaction is synced, unless all its writes are
 * unsynced: these survive the end of the process, and a power failure may undo those of the last second. A write's
 * promise resolves when it is on disk in this way, and rejects when it is not stored: with `store_failed` if the store
 * failed, or with SQLite's error if the statement is invalid. Other writes of that transaction are stored without the invalid one. The queue is
 * bounded: beyond it writes are refused as `overloaded`. Promises settle in the order of the writes.
 * Reads return committed rows, not queued ones: see {@link written}.
 * After a system error the connection writes nothing more: a new one is opened, verified, and replaces it. Until then
 * writes are refused, while the old connection still reads.
 */
export class Database {
  readonly #onFailure: (error: unknown) => void;
  readonly #onRecovered: () => void;
  readonly #isHeld: () => boolean;
  #onCommitted: () => void = () => {};
  #beforeCommit: () => void = () => {};
  #wantsAlongside = false;
  readonly #writers: Writers;
  readonly #queued: WriteQueue;
  /** Durations of transactions, from sending to the sync. */
  readonly commitTimes = new Histogram(commitBounds);
  /** The writes of the running transaction. */
  #inFlight: readonly Write[] = [];
  #isBusy = false;
  /** Whether a flush timed out while waiting for the running transaction. */
  #isHung = false;
  #isOverloaded = false;
  /** Whether the batch is sent as soon as no transaction is running. */
  #isDue = false;
  #wantsRecovery = false;
  #wantsRewrite = false;
  /** How many unwritten changes are retried in one transaction. */
  #rewriteSize = Number.POSITIVE_INFINITY;
  #shrinking: { readonly pages: number; readonly done: Deferred<void> } | undefined;
  #urgent: NodeJS.Immediate | undefined;
  #lazy: NodeJS.Timeout | undefined;
  /** Set while a commit is unsynced. */
  #syncing: NodeJS.Timeout | undefined;
  #wantsSync = false;
  #notifyRetry: NodeJS.Timeout | undefined;
  readonly #unwritten: Unwritten;
  /** Set after a system error, or if a write that must be first failed: writes are refused until a retry. */
  #refuses = false;

  /** `path` is a file or `:memory:`. `onFailure` receives the error of every failed transaction. */
  constructor(path: string, onFailure: (error: unknown) => void, options: DatabaseOptions = {}) {
    const {
      mark,
      log,
      onRecovered = () => {},
      maxLocalMs = 100,
      maxIdleThreadMs = 60_000,
      isHeld = () => true,
    } = options;
    this.#isHeld = isHeld;
    const bounds = options.limits ?? limits.store;
    this.#queued = new WriteQueue(bounds);
    this.#unwritten = new Unwritten(bounds, () => {
      this.#wantsRecovery = true;
      this.#next();
    });
    this.#onFailure = onFailure;
    this.#onRecovered = onRecovered;
    const open = options.connect ?? connect;
    const connection = open(path);
    try {
      migrate(connection);
      const local = new Writer({ path, connection, connect: open, mark, log: log && new LogAppender(log.state) });
      const start: StartThread = (callbacks) =>
        new WritingThread({ path, mark: mark?.descriptor, log: log?.state, ...callbacks });
      const isAlone = options.connect !== undefined || path === ":memory:";
      const startThread = options.startThread ?? (isAlone ? undefined : start);
      this.#writers = new Writers({ local, startThread, maxLocalMs, maxIdleThreadMs, onFailure });
    } catch (error) {
      connection.close();
      throw error;
    }
  }

  get health(): StoreHealth {
    return this.#unwritten.health;
  }

  /** Number of changes that wait for a retry. */
  get unwritten(): number {
    return this.#unwritten.size;
  }

  /** The number of the newest commit. */
  get commits(): number {
    return this.#writers.commits;
  }

  /** Whether the writing thread is used. */
  get isThreaded(): boolean {
    return this.#writers.isThreaded;
  }

  /** Calls the listener after each transaction with changes, when reads find them. There is one listener. */
  onCommitted(listener: () => void): void {
    this.#onCommitted = listener;
  }

  /**
   * Calls the listener before each transaction with new writes is put together: what it writes with {@link alongside} is
   * stored with them or not at all. There is one listener.
   */
  beforeCommit(listener: () => void): void {
    this.#beforeCommit = listener;
  }

  /** Like {@link keepUnsynced}, for the listener of {@link beforeCommit}: it always has room, and causes no transaction. */
  alongside(key: string, statement: Statement, ...parameters: Parameters): Promise<void> {
    const write = { sql: statement.sql, parameters, bytes: sizeOf(parameters), done: deferred<void>() };
    this.#queued.add({ ...write, key, isSynced: false });
    return write.done.promise;
  }

  /** Has the listener of {@link beforeCommit} called soon, also if there is nothing else to store. */
  commitAlongside(): void {
    this.#wantsAlongside = true;
    this.#commitLater();
  }

  prepare(sql: string): Statement {
    return new Statement(sql, () => this.#writers.connection);
  }

  /** Queues a statement for the next transaction. It is not retried if that fails. */
  write(statement: Statement, ...parameters: Parameters): Promise<void> {
    this.commitSoon();
    return this.#queue(statement, parameters);
  }

  /**
   * Like {@link write}. Statements with the same `group` are stored all or not at all, in one transaction if
   * possible.
   */
  together(group: string, statement: Statement, ...parameters: Parameters): Promise<void> {
    const former = this.#inFlight.find((write) => write.group === group) ?? this.#queued.inParts(group);
    if (former === undefined) {
      this.commitSoon();
      return this.#queue(statement, parameters, { group });
    }
    // The other write is already in progress; this one follows if that is stored.
    const written = former.done.promise.then(() => this.together(group, statement, ...parameters));
    written.catch(() => {});
    return written;
  }

  /**
   * Queues a statement that records an event that has already happened. If it fails, the promise rejects, and the
   * newest statement of each key is retried when the store works again. It briefly waits for another transaction to
   * join; if an answer waits for it, call {@link commitSoon}.
   */
  keep(key: string, statement: Statement, ...parameters: Parameters): Promise<void> {
    this.#commitLater();
    return this.#queue(statement, parameters, { key });
  }

  /** Like {@link keep}, and unsynced: for changes that a later daemon finds out again. */
  keepUnsynced(key: string, statement: Statement, ...parameters: Parameters): Promise<void> {
    this.#commitLater();
    return this.#queue(statement, parameters, { key, isSynced: false });
  }

  /**
   * Like {@link keep} for deletions of rows that a later write may add again, such as those of a closed session. It is
   * committed at the end of the turn. Until it is written, no newer write is, and older unwritten changes are written
   * together with it.
   */
  clear(key: string, statement: Statement, ...parameters: Parameters): Promise<void> {
    this.commitSoon();
    return this.#queue(statement, parameters, { key, isFirst: true });
  }

  /** Like {@link keepUnsynced} for rows that may be missing: not retried if it fails. */
  note(statement: Statement, ...parameters: Parameters): Promise<void> {
    this.#commitLater();
    return this.#queue(statement, parameters, { isSynced: false });
  }

  /** Commits queued writes at the end of this turn of the event loop. */
  commitSoon(): void {
    if (this.#isBusy) this.#isDue = true;
    else this.#urgent ??= setImmediate(() => this.#due());
  }

  /** Resolves when all queued writes are on disk, or have failed: reads find them. */
  async written(): Promise<void> {
    const last = this.#queued.newest ?? this.#inFlight.at(-1);
    if (last === undefined) return;
    if (this.#queued.newest !== undefined) this.commitSoon();
    await last.done.promise.catch(() => {});
  }

  /**
   * Commits queued writes now, blocking the event loop; prefer {@link written}. Never throws. Waits at most this long
   * (default: 1 s) for a disk that does not respond, and not again before it has responded. Returns whether all
   * writes have settled.
   */
  flush(maxMs = maxFlushMs): boolean {
    this.#due();
    return (!this.#isHung || maxMs > maxFlushMs) && this.#finish(maxMs);
  }

  /** Returns at most this many free pages to the file system. Also resolves if that failed. */
  async shrink(pages: number): Promise<void> {
    this.#shrinking ??= { pages, done: deferred() };
    const { done } = this.#shrinking;
    this.#next();
    await done.promise;
  }

  close(): void {
    this.#wantsSync = this.#syncing !== undefined;
    this.#due();
    this.#finish(maxCloseMs);
    if (this.#unwritten.size > 0) {
      this.#wantsRecovery = true;
      this.#due();
      this.#finish(maxCloseMs);
    }
    this.#unwritten.stop();
    clearTimeout(this.#notifyRetry);
    clearTimeout(this.#syncing);
    this.#writers.close();
  }

  #commitLater(): void {
    this.#lazy ??= setTimeout(() => this.#due(), maxKeepDelayMs);
  }

  #queue({ sql }: Statement, parameters: Parameters, of: Partial<Write> = {}): Promise<void> {
    const bytes = sizeOf(parameters);
    // Handled from the beginning: an ignored outcome must not end the daemon.
    const write: Write = { sql, parameters, bytes, done: deferred<void>(), isSynced: true, ...of };
    if (!this.#queued.hasRoom(bytes)) this.#due();
    if (!this.#hasRoom(write)) this.#refuse(write);
    else if (this.#queued.hasRoom(bytes)) this.#queued.add(write);
    else this.#queued.supersede(write);
    return write.done.promise;
  }

  /** A newer change of a queued one always has room; new work has none while many changes are unwritten. */
  #hasRoom({ key, bytes }: Write): boolean {
    if (key === undefined) return this.#queued.hasRoom(bytes) && !this.#unwritten.isCrowded;
    return !this.#queued.isFull || this.#queued.has(key) || this.#unwritten.has(key);
  }

  /** Too much is queued already. */
  #refuse({ done }: Write): void {
    const error = tooMuchWaits();
    if (!this.#isOverloaded) this.#onFailure(error);
    this.#isOverloaded = true;
    done.reject(error);
  }

  #finish(maxMs: number): boolean {
    const deadline = performance.now() + maxMs;
    while (this.#isBusy && this.#writers.finish(Math.max(0, deadline - performance.now())));
    this.#isHung = this.#isBusy;
    return !this.#isBusy;
  }

  #due(): void {
    clearImmediate(this.#urgent);
    clearTimeout(this.#lazy);
    this.#urgent = undefined;
    this.#lazy = undefined;
    this.#isDue = true;
    this.#next();
  }

  /** Starts the next transaction if none is running. */
  #next(): void {
    if (this.#isBusy) return;
    if (this.#wantsRecovery) {
      this.#wantsRecovery = false;
      this.#ask({ kind: "recover" }, (outcome) => this.#recovered(outcome));
    } else if (this.#wantsRewrite) {
      this.#wantsRewrite = false;
      this.#rewrite();
    } else if (this.#isDue || this.#queued.hasParts) this.#send();
    else if (this.#wantsSync) this.#sync();
    else if (this.#shrinking !== undefined) this.#shrink(this.#shrinking);
  }

  #shrink({ pages, done }: { readonly pages: number; readonly done: Deferred<void> }): void {
    this.#shrinking = undefined;
    this.#ask({ kind: "shrink", pages }, ({ failure }) => {
      if (failure !== undefined) this.#onFailure(failure.error);
      done.resolve();
    });
  }

  /** Syncs earlier commits. */
  #sync(): void {
    this.#wantsSync = false;
    if (this.#syncing === undefined || this.#refuses) {
      this.#next();
      return;
    }
    this.#ask({ kind: "commit", changes: [], isSynced: true }, ({ failure }) => {
      if (failure !== undefined) this.#failed([], failure);
    });
  }

  #ask(request: WriterRequest, take: (outcome: WriterOutcome) => void): void {
    this.#isBusy = true;
    const from = performance.now();
    this.#writers.request(request, (outcome) => {
      this.#isBusy = false;
      this.#isHung = false;
      this.#isOverloaded = false;
      if (request.kind === "commit") this.commitTimes.observe((performance.now() - from) / 1_000);
      if (outcome.markError !== undefined) this.#onFailure(outcome.markError);
      if (outcome.failure === undefined) this.#noteSync(request);
      take(outcome);
      if (request.kind === "commit" && outcome.failure === undefined) this.#notifyCommitted();
      this.#next();
    });
  }

  #noteSync(request: WriterRequest): void {
    if (request.kind === "commit" && !request.isSynced) {
      this.#syncing ??= setTimeout(() => {
        this.#wantsSync = true;
        this.#next();
      }, maxUnsyncedMs).unref();
    } else if (request.kind === "commit") {
      clearTimeout(this.#syncing);
      this.#syncing = undefined;
    }
  }

  /** A listener that cannot read is called again, after a delay or after the next transaction. */
  #notifyCommitted(): void {
    clearTimeout(this.#notifyRetry);
    try {
      this.#onCommitted();
    } catch (error) {
      this.#onFailure(error);
      this.#notifyRetry = setTimeout(() => this.#notifyCommitted(), notifyRetryMs).unref();
    }
  }

  #send(): void {
    if (this.#unwritten.hasFirst && !this.#refuses) {
      this.#rewrite();
      return;
    }
    if (!this.#queued.hasParts) {
      this.#isDue = false;
      if (this.#queued.newest !== undefined || this.#wantsAlongside) this.#beforeCommit();
      this.#wantsAlongside = false;
    }
    const batch = this.#queued.take();
    const isHeld = batch.length === 0 || this.#isHeld();
    if (!isHeld) for (const { done } of batch) done.reject(directoryLost());
    else if (this.#refuses) this.#unwritten.refuse(batch);
    if (!isHeld || this.#refuses || batch.length === 0) {
      this.#next();
      return;
    }
    this.#inFlight = batch;
    // While the store fails, an earlier change of the same row may be unwritten.
    const isSynced = this.health.state !== "open" || batch.some((write) => write.isSynced);
    this.#ask({ kind: "commit", changes: batch, isSynced }, ({ failure }) => {
      this.#inFlight = [];
      if (failure !== undefined) this.#failed(batch, failure);
      else this.#committed(batch);
    });
  }

  #committed(batch: readonly Write[]): void {
    for (const { key, done } of batch) {
      if (key !== undefined) this.#unwritten.written(key);
      done.resolve();
    }
    if (this.#unwritten.health.state === "failing") this.#wantsRewrite = true;
  }

  #failed(batch: readonly Write[], { kind, error }: WriterFailure): void {
    if (kind === "statement") {
      if (this.#queued.split(batch)) return;
      this.#onFailure(error);
      // An invalid statement must not be retried forever.
      for (const { done } of batch) done.reject(error);
      return;
    }
    this.#markFailing(error);
    this.#unwritten.refuse(batch, error);
    if (kind === "broken") {
      this.#refuses = true;
      this.#wantsRecovery = true;
    } else this.#unwritten.retryLater();
  }

  #markFailing(error: Error): void {
    this.#onFailure(error);
    this.#unwritten.failing(error);
  }

  #recovered({ failure }: WriterOutcome): void {
    if (failure === undefined) {
      this.#refuses = false;
      this.#wantsRewrite = true;
      return;
    }
    this.#markFailing(failure.error);
    this.#unwritten.retryLater();
  }

  #rewrite(): void {
    const again = this.#unwritten.due().slice(0, this.#rewriteSize);
    if (again.length === 0) {
      this.#opened();
      this.#next();
      return;
    }
    this.#ask({ kind: "commit", changes: again, isSynced: true }, ({ failure }) => this.#rewritten(again, failure));
  }

  #rewritten(again: readonly Write[], failure: WriterFailure | undefined): void {
    if (failure === undefined || failure.kind === "statement") {
      if (failure !== undefined) this.#onFailure(failure.error);
      // A statement that SQLite refuses would block the others: it is searched by halving the batch, and dropped.
      const isFound = failure === undefined || again.length === 1;
      if (isFound) this.#unwritten.forget(again);
      this.#rewriteSize = isFound ? Number.POSITIVE_INFINITY : again.length >> 1;
      this.#wantsRewrite = true;
      return;
    }
    if (failure.kind === "broken" || this.#unwritten.hasFirst) this.#refuses = true;
    this.#markFailing(failure.error);
    this.#unwritten.retryLater();
  }

  #opened(): void {
    this.#unwritten.opened();
    this.#wantsSync = true;
    this.#onRecovered();
  }
}

function directoryLost(): WireError {
  return new WireError("store_failed", "The state directory was removed or replaced; the daemon is shutting down.");
}

/** Approximate memory of parameters. */
function sizeOf(parameters: Parameters): number {
  let size = 64;
  for (const parameter of parameters)
    size += typeof parameter === "object" || typeof parameter === "string" ? (parameter?.length ?? 8) : 8;
  return size;
}
