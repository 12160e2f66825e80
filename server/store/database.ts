import { WireError } from "../../protocol/errors.ts";
import { limits } from "../configuration/limits.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import { Histogram } from "../lib/histogram.ts";
import type { CommitMark } from "./commit-mark.ts";
import { type Connect, connect, type Parameters, Statement } from "./connection.ts";
import { migrate } from "./migrations.ts";
import { type StoreHealth, tooMuchWaits, Unwritten, type UnwrittenLimits, type Write } from "./unwritten.ts";
import { type QueueLimits, WriteQueue } from "./write-queue.ts";
import { Writer, type WriterFailure, type WriterOutcome, type WriterRequest } from "./writer.ts";
import { type StartThread, Writers } from "./writers.ts";
import { WritingThread } from "./writing-thread.ts";

export interface DatabaseOptions {
  /** Where the number of the newest commit is kept; without it a lost end of the WAL goes unnoticed. */
  readonly mark?: CommitMark;
  /** The store can be written again. */
  readonly onRecovered?: () => void;
  /** Whether the file is still at its path. Otherwise nothing is stored: no later daemon could find it. Default: always. */
  readonly isHeld?: (() => boolean) | undefined;
  /** A thread of its own writes as soon as writing has taken so much of 5 s of this one. Default: 100. */
  readonly maxLocalMs?: number;
  /** That thread ends when nothing was written for so long. Default: 60,000. */
  readonly maxIdleThreadMs?: number;
  /** Default: those of the configuration. */
  readonly limits?: QueueLimits & UnwrittenLimits;
  /** For tests. There is no other thread then. */
  readonly connect?: Connect;
  /** For tests. */
  readonly startThread?: StartThread;
}

/** How long a change that has happened waits for a transaction that is made anyway. */
const maxKeepDelayMs = 1;

const maxFlushMs = 1_000;
const tellAgainMs = 1_000;

/** How long the end of a daemon waits for a disk that does not answer. */
export const maxCloseMs = 30_000;
const commitBounds = [0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30];

/**
 * The embedded store: SQLite in WAL mode with `synchronous=FULL`. Writes of one turn of the event loop share one
 * transaction and one sync, and so do those that come while another transaction is under way. A write's promise resolves
 * when it is on disk, and rejects when it is not stored: where the store failed with the error `store_failed`, and with
 * its own where the statement was wrong. What shared a transaction with such a statement is stored without it. Only so
 * much waits for a disk: then writes are refused as `overloaded`. Promises settle in the order of the writes.
 *
 * Reads find what is committed, and not what is queued: see {@link written}.
 *
 * After an error of the system nothing more is written by the connection that met it: another one is opened, verified,
 * and takes its place. Until that succeeds writes are refused, while the old connection still reads.
 */
export class Database {
  readonly #onFailure: (error: unknown) => void;
  readonly #onRecovered: () => void;
  readonly #isHeld: () => boolean;
  #onCommitted: () => void = () => {};
  readonly #writers: Writers;
  readonly #queued: WriteQueue;
  /** How long transactions take, from being sent to being on disk. */
  readonly commitTimes = new Histogram(commitBounds);
  /** What a transaction is made of that is under way. */
  #inFlight: readonly Write[] = [];
  #isBusy = false;
  /** Whether somebody has waited for what is under way, and in vain. */
  #isHung = false;
  #isOverloaded = false;
  /** Whether the batch is sent as soon as nothing is under way. */
  #isDue = false;
  #wantsRecovery = false;
  #wantsRewrite = false;
  /** How many of the unwritten changes are made again in one transaction. */
  #rewriteSize = Number.POSITIVE_INFINITY;
  #shrinking: { readonly pages: number; readonly done: Deferred<void> } | undefined;
  #urgent: NodeJS.Immediate | undefined;
  #lazy: NodeJS.Timeout | undefined;
  #toldAgain: NodeJS.Timeout | undefined;
  readonly #unwritten: Unwritten;
  /** The connection has met an error of the system, or what comes first could not be written: so until it is tried again. */
  #refuses = false;

  /** `path` is a file or `:memory:`. `onFailure` hears of every transaction that failed. */
  constructor(path: string, onFailure: (error: unknown) => void, options: DatabaseOptions = {}) {
    const { mark, onRecovered = () => {}, maxLocalMs = 100, maxIdleThreadMs = 60_000, isHeld = () => true } = options;
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
      const local = new Writer({ path, connection, connect: open, mark });
      const start: StartThread = (callbacks) => new WritingThread({ path, mark: mark?.descriptor, ...callbacks });
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

  /** How many changes wait to be written again. */
  get unwritten(): number {
    return this.#unwritten.size;
  }

  /** The number of the newest commit. */
  get commits(): number {
    return this.#writers.commits;
  }

  /** Whether a thread of its own writes. */
  get isThreaded(): boolean {
    return this.#writers.isThreaded;
  }

  /** Calls `listener` after each transaction of changes, when reads find them. There is one listener. */
  onCommitted(listener: () => void): void {
    this.#onCommitted = listener;
  }

  prepare(sql: string): Statement {
    return new Statement(sql, () => this.#writers.connection);
  }

  /** Queues a statement for the next transaction. If that fails it is forgotten. */
  write(statement: Statement, ...parameters: Parameters): Promise<void> {
    this.hurry();
    return this.#queue(statement, parameters);
  }

  /** As {@link write}; of what has the same `group` all is stored or nothing, in one transaction where it can be. */
  together(group: string, statement: Statement, ...parameters: Parameters): Promise<void> {
    const former = this.#inFlight.find((write) => write.group === group) ?? this.#queued.inParts(group);
    if (former === undefined) {
      this.hurry();
      return this.#queue(statement, parameters, { group });
    }
    // That one is on its way without this one, which follows only where it was stored.
    const written = former.done.promise.then(() => this.together(group, statement, ...parameters));
    written.catch(() => {});
    return written;
  }

  /**
   * Queues a statement that has happened in any case, and is only noted. If it fails, the promise rejects, and the newest
   * statement of each key is made again when the store is back. Nobody is answered by it, so it waits for a moment for
   * the next transaction to take it along.
   */
  keep(key: string, statement: Statement, ...parameters: Parameters): Promise<void> {
    this.#lazy ??= setTimeout(() => this.#due(), maxKeepDelayMs);
    return this.#queue(statement, parameters, { key });
  }

  /**
   * As {@link keep} for what takes away rows that a later write may add again, as those of a session that is closed: as
   * long as it is owed nothing newer is written, and what was owed before it is written with it.
   */
  clear(key: string, statement: Statement, ...parameters: Parameters): Promise<void> {
    this.#lazy ??= setTimeout(() => this.#due(), maxKeepDelayMs);
    return this.#queue(statement, parameters, { key, isFirst: true });
  }

  /** As {@link keep} for what may be missing: if it fails it is forgotten. */
  note(statement: Statement, ...parameters: Parameters): Promise<void> {
    this.#lazy ??= setTimeout(() => this.#due(), maxKeepDelayMs);
    return this.#queue(statement, parameters);
  }

  /** Has what is queued committed at the end of this turn of the event loop. */
  hurry(): void {
    if (this.#isBusy) this.#isDue = true;
    else this.#urgent ??= setImmediate(() => this.#due());
  }

  /** Resolves when all that is queued now is on disk, or has failed: reads find it. */
  async written(): Promise<void> {
    const last = this.#queued.newest ?? this.#inFlight.at(-1);
    if (last === undefined) return;
    if (this.#queued.newest !== undefined) this.hurry();
    await last.done.promise.catch(() => {});
  }

  /**
   * Commits what is queued, now, while everybody waits: {@link written} is the better choice wherever it can be awaited.
   * Never throws. A disk that does not answer for so long, 1 s by default, is not waited for, and not again before it has
   * answered: gives whether everything came to an end.
   */
  flush(maxMs = maxFlushMs): boolean {
    this.#due();
    return (!this.#isHung || maxMs > maxFlushMs) && this.#finish(maxMs);
  }

  /** Gives at most so many free pages back to the file system. Resolves also when it could not. */
  async shrink(pages: number): Promise<void> {
    this.#shrinking ??= { pages, done: deferred() };
    const { done } = this.#shrinking;
    this.#next();
    await done.promise;
  }

  close(): void {
    this.#due();
    this.#finish(maxCloseMs);
    if (this.#unwritten.size > 0) {
      this.#wantsRecovery = true;
      this.#due();
      this.#finish(maxCloseMs);
    }
    this.#unwritten.stop();
    clearTimeout(this.#toldAgain);
    this.#writers.close();
  }

  #queue({ sql }: Statement, parameters: Parameters, of: Pick<Write, "key" | "group" | "isFirst"> = {}): Promise<void> {
    const bytes = sizeOf(parameters);
    // Whoever does not look at the outcome shall not end the daemon: such a promise is handled from the beginning.
    const write = { sql, parameters, bytes, done: deferred<void>(), ...of };
    if (!this.#isHeld()) {
      write.done.reject(new WireError("store_failed", "The state directory was removed or replaced; the daemon ends."));
      return write.done.promise;
    }
    if (!this.#queued.hasRoom(bytes)) this.#due();
    if (!this.#hasRoom(write)) this.#refuse(write);
    else if (this.#queued.hasRoom(bytes)) this.#queued.add(write);
    else this.#queued.supersede(write);
    return write.done.promise;
  }

  /** The newest change of what a change waits of has room in any case, and new work has none where the store owes much. */
  #hasRoom({ key, bytes }: Write): boolean {
    if (key === undefined) return this.#queued.hasRoom(bytes) && !this.#unwritten.isCrowded;
    return !this.#queued.isFull || this.#queued.has(key) || this.#unwritten.has(key);
  }

  /** Too much waits for the disk already. */
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

  /** Begins what is to be done next, if nothing is under way. */
  #next(): void {
    if (this.#isBusy) return;
    if (this.#wantsRecovery) {
      this.#wantsRecovery = false;
      this.#ask({ kind: "recover" }, (outcome) => this.#recovered(outcome));
    } else if (this.#wantsRewrite) {
      this.#wantsRewrite = false;
      this.#rewrite();
    } else if (this.#isDue || this.#queued.hasParts) this.#send();
    else if (this.#shrinking !== undefined) this.#shrink(this.#shrinking);
  }

  #shrink({ pages, done }: { readonly pages: number; readonly done: Deferred<void> }): void {
    this.#shrinking = undefined;
    this.#ask({ kind: "shrink", pages }, ({ failure }) => {
      if (failure !== undefined) this.#onFailure(failure.error);
      done.resolve();
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
      take(outcome);
      if (request.kind === "commit" && outcome.failure === undefined) this.#tellCommitted();
      this.#next();
    });
  }

  /** A listener that cannot read is called again, a moment later or after the next transaction. */
  #tellCommitted(): void {
    clearTimeout(this.#toldAgain);
    try {
      this.#onCommitted();
    } catch (error) {
      this.#onFailure(error);
      this.#toldAgain = setTimeout(() => this.#tellCommitted(), tellAgainMs).unref();
    }
  }

  #send(): void {
    if (this.#unwritten.hasFirst && !this.#refuses) {
      this.#rewrite();
      return;
    }
    if (!this.#queued.hasParts) this.#isDue = false;
    const batch = this.#queued.take();
    if (this.#refuses) this.#unwritten.refuse(batch);
    if (this.#refuses || batch.length === 0) {
      this.#next();
      return;
    }
    this.#inFlight = batch;
    this.#ask({ kind: "commit", changes: batch }, ({ failure }) => {
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
      // What is wrong must not be tried for ever.
      for (const { done } of batch) done.reject(error);
      return;
    }
    this.#noteFailing(error);
    this.#unwritten.refuse(batch, error);
    if (kind === "broken") {
      this.#refuses = true;
      this.#wantsRecovery = true;
    } else this.#unwritten.retryLater();
  }

  #noteFailing(error: Error): void {
    this.#onFailure(error);
    this.#unwritten.failing(error);
  }

  #recovered({ failure }: WriterOutcome): void {
    if (failure === undefined) {
      this.#refuses = false;
      this.#wantsRewrite = true;
      return;
    }
    this.#noteFailing(failure.error);
    this.#unwritten.retryLater();
  }

  #rewrite(): void {
    const again = this.#unwritten.due().slice(0, this.#rewriteSize);
    if (again.length === 0) {
      this.#opened();
      this.#next();
      return;
    }
    this.#ask({ kind: "commit", changes: again }, ({ failure }) => this.#rewritten(again, failure));
  }

  #rewritten(again: readonly Write[], failure: WriterFailure | undefined): void {
    if (failure === undefined || failure.kind === "statement") {
      if (failure !== undefined) this.#onFailure(failure.error);
      // One that SQLite does not take would keep all the others away: it is looked for among fewer, and forgotten.
      const isFound = failure === undefined || again.length === 1;
      if (isFound) this.#unwritten.forget(again);
      this.#rewriteSize = isFound ? Number.POSITIVE_INFINITY : again.length >> 1;
      this.#wantsRewrite = true;
      return;
    }
    if (failure.kind === "broken" || this.#unwritten.hasFirst) this.#refuses = true;
    this.#noteFailing(failure.error);
    this.#unwritten.retryLater();
  }

  #opened(): void {
    this.#unwritten.opened();
    this.#onRecovered();
  }
}

/** What parameters take in memory, about. */
function sizeOf(parameters: Parameters): number {
  let size = 64;
  for (const parameter of parameters)
    size += typeof parameter === "object" || typeof parameter === "string" ? (parameter?.length ?? 8) : 8;
  return size;
}
