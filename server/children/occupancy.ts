import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { unlessAborted, within } from "../lib/deadline.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { Child } from "../pi/child.ts";
import { privateBytes } from "../pi/processes.ts";
import type { ChildSupervisor } from "./child-supervisor.ts";

export interface OccupancyLimits {
  /** Maximum number of children: of sessions, warm, and starting. */
  readonly maxChildren: number;
  /** Maximum of their unshared memory. */
  readonly maxChildrenBytes: number;
  /** How long a start may wait for a free slot. */
  readonly placeTimeoutMs: number;
  /**
   * If the end of a child takes longer, the next idle one is ended as well. For memory, only while the child has not
   * been confirmed idle.
   */
  readonly endPatienceMs: number;
  /** Interval of checks on sessions, also while a start waits for a slot. */
  readonly lookEveryMs: number;
  /** Interval of checks on memory. */
  readonly weighEveryMs: number;
}

export interface OccupancyOptions {
  readonly limits: OccupancyLimits;
  readonly sessions: () => Iterable<{ readonly sessionId: string; readonly supervisor: ChildSupervisor }>;
  /** Number of warm children. */
  readonly warm: () => number;
  /** Ends one warm child. Returns whether there was one. */
  readonly shrinkWarm: () => boolean;
  readonly log: Logger;
  /** For tests. Default: measured. */
  readonly bytesOf?: (pids: readonly number[]) => Promise<number>;
}

/** With less time left than this, no child is ended for a start: it would end too late. */
const shortestEndMs = 50;

/** The end of an idle child, to free a slot or memory. */
interface End {
  /** On the clock of `performance.now`. */
  readonly since: number;
  /** Whether the child was confirmed idle, so that its end is certain. */
  isSure: boolean;
  /** Whether it has ended. Never rejects. */
  done: Promise<boolean>;
}

/**
 * Limits the children. Idle ones end after their idle time, or earlier when their slot or memory is needed, least
 * recently used first.
 */
export class Occupancy {
  readonly #options: OccupancyOptions;
  readonly #children = new Set<Child>();
  readonly #timer: NodeJS.Timeout;
  /** Starts that have a slot. */
  #admitted = 0;
  /** The current search for a slot; the next one begins after it, so that one child is ended for each start. */
  #searching: Promise<unknown> = Promise.resolve();
  readonly #ends = new Map<ChildSupervisor, End>();
  #changed: Deferred<void> = deferred();
  #weighedAt = 0;
  /** The memory of children at the last check. */
  bytes = 0;
  /** Total number of started children, and of crashed ones. */
  started = 0;
  crashed = 0;
  #tending: Promise<void> | undefined;

  constructor(options: OccupancyOptions) {
    this.#options = options;
    this.#timer = setInterval(() => void this.look(), options.limits.lookEveryMs).unref();
  }

  /** Children that belong to sessions. */
  get size(): number {
    return this.#children.size;
  }

  /** Whether a slot is free now. */
  get hasPlace(): boolean {
    return this.#children.size + this.#admitted + this.#options.warm() < this.#options.limits.maxChildren;
  }

  /**
   * Starts a child once there is a slot for it; idle children are ended for it. Throws `overloaded` if none became
   * free in time, and the signal's reason.
   */
  async place<T extends { readonly child: Child }>(start: () => Promise<T>, signal: AbortSignal): Promise<T> {
    await this.#search(signal);
    try {
      const started = await start();
      this.#children.add(started.child);
      this.started += 1;
      void started.child.exited.then(({ expected }) => {
        if (!expected) this.crashed += 1;
        this.#children.delete(started.child);
        this.changed();
      });
      return started;
    } finally {
      this.#admitted -= 1;
      this.changed();
    }
  }

  async #search(signal: AbortSignal): Promise<void> {
    const deadline = performance.now() + this.#options.limits.placeTimeoutMs;
    const search = this.#searching.then(() => this.#findPlace(deadline, signal));
    this.#searching = search.catch(() => {});
    try {
      await unlessAborted(search, signal);
    } catch (error) {
      // It may have got one at that very moment.
      search.then(
        () => {
          this.#admitted -= 1;
        },
        () => {},
      );
      throw error;
    }
  }

  /** A session has changed: a slot may have become free. */
  changed(): void {
    this.#changed.resolve();
    this.#changed = deferred();
  }

  /** Checks every session for silent and idle children, and the total memory. */
  look(now = performance.now()): Promise<void> {
    const failed = (error: unknown): void =>
      this.#options.log.error({ err: error }, "cannot check the sessions' children");
    try {
      for (const { supervisor } of this.#options.sessions()) supervisor.look();
    } catch (error) {
      failed(error);
    }
    this.#tending ??= this.#look(now)
      .catch(failed)
      .finally(() => {
        this.#tending = undefined;
      });
    return this.#tending;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #look(now: number): Promise<void> {
    const due = [...this.#options.sessions()]
      .map(({ supervisor }) => supervisor)
      .filter((supervisor) => supervisor.hibernation.isDue(now) && isSpare(supervisor));
    const ends: Promise<boolean>[] = [];
    for (const supervisor of due) {
      const { done } = this.#ends.get(supervisor) ?? this.#begin(supervisor);
      ends.push(done);
      await within(done, this.#options.limits.endPatienceMs);
    }
    await Promise.all(ends);
    if (now - this.#weighedAt < this.#options.limits.weighEveryMs) return;
    this.#weighedAt = now;
    await this.#weigh();
  }

  async #weigh(): Promise<void> {
    const { limits, bytesOf = privateBytes, log } = this.#options;
    // A few at a time: each end frees memory.
    for (let ended = 0; ended < 16; ended += 1) {
      const bytes = await bytesOf([...this.#children].map(({ pid }) => pid));
      this.bytes = bytes;
      if (bytes <= limits.maxChildrenBytes) return;
      if (this.#options.shrinkWarm()) continue;
      if (!(await this.#endOne())) {
        log.warn({ bytes, maxBytes: limits.maxChildrenBytes }, "children exceed the memory limit, and all are in use");
        return;
      }
    }
  }

  async #findPlace(deadline: number, signal: AbortSignal): Promise<void> {
    const { limits, shrinkWarm } = this.#options;
    signal.throwIfAborted();
    const tried = new Set<ChildSupervisor>();
    let atFirst = this.#changed;
    while (!this.hasPlace) {
      const changed = this.#changed.promise;
      if (shrinkWarm()) continue;
      const left = deadline - performance.now();
      if (left <= 0) throw this.#overloaded();
      const isLate = left < shortestEndMs;
      const end = isLate ? undefined : this.#endOldest(tried);
      if (end !== undefined) {
        const patience = end.since + limits.endPatienceMs - performance.now();
        await unlessAborted(within(Promise.race([changed, end.done]), Math.min(left, patience)), signal);
        continue;
      }
      // Each child was asked once. They are asked again after a change, and periodically, because not everything that
      // keeps a child reports its end: a subscriber, a call. The last round is before the deadline.
      const waitMs = isLate ? left : Math.min(limits.lookEveryMs, left / 2);
      if (isLate || this.#changed === atFirst) await unlessAborted(within(changed, waitMs), signal);
      atFirst = this.#changed;
      tried.clear();
    }
    this.#admitted += 1;
  }

  #overloaded(): WireError {
    const { maxChildren } = this.#options.limits;
    const message = `${maxChildren} pi processes run, which is the limit, and each of them is needed. Try again later.`;
    return new WireError("overloaded", message, { retryAfterMs: 5_000, maxChildren });
  }

  /** Ends one idle child, and further ones until one confirms. Returns whether one has ended. */
  async #endOne(): Promise<boolean> {
    const tried = new Set<ChildSupervisor>();
    const slow: Promise<boolean>[] = [];
    const { promise: one, resolve } = Promise.withResolvers<true>();
    for (let end = this.#endOldest(tried); end !== undefined; end = this.#endOldest(tried)) {
      void end.done.then((hasEnded) => hasEnded && resolve(true));
      const first = Promise.race([one, end.done]);
      const waited = await within(first, end.since + this.#options.limits.endPatienceMs - performance.now());
      // Not urgent: a child that is being ended frees its memory, so no further one is ended.
      const hasEnded = waited.kind === "done" ? waited.value : end.isSure && (await first);
      if (hasEnded) return true;
      if (waited.kind === "timeout") slow.push(end.done);
    }
    return await Promise.race([one, Promise.all(slow).then((all) => all.includes(true))]);
  }

  /**
   * An end that can be waited for: the newest one in progress, else that of the least recently used idle child that
   * was not `tried`. A stopped or hanging child does not prevent others from being ended.
   */
  #endOldest(tried: Set<ChildSupervisor>): End | undefined {
    const now = performance.now();
    for (const [supervisor, end] of this.#ends) {
      tried.add(supervisor);
      if (now - end.since < this.#options.limits.endPatienceMs) return end;
    }
    const [oldest] = [...this.#options.sessions()]
      .map(({ supervisor }) => supervisor)
      .filter(
        (supervisor) => !tried.has(supervisor) && supervisor.hibernation.child !== undefined && isSpare(supervisor),
      )
      .sort((a, b) => a.hibernation.lastUsedAt - b.hibernation.lastUsedAt);
    if (oldest === undefined) return undefined;
    tried.add(oldest);
    return this.#begin(oldest);
  }

  #begin(supervisor: ChildSupervisor): End {
    const end: End = { since: performance.now(), isSure: false, done: Promise.resolve(false) };
    end.done = this.#end(supervisor, end).finally(() => this.#ends.delete(supervisor));
    this.#ends.set(supervisor, end);
    return end;
  }

  async #end({ hibernation }: ChildSupervisor, end: End): Promise<boolean> {
    try {
      const outcome = await hibernation.fallAsleep();
      if (typeof outcome === "string") return false;
      end.isSure = true;
      await outcome.ended;
      return true;
    } catch (error) {
      this.#options.log.info({ err: error }, "a hibernating child ended by itself");
      return false;
    }
  }
}

/** Whether nothing needs the child, as far as the daemon can tell. */
function isSpare({ hibernation }: ChildSupervisor): boolean {
  return hibernation.keepsAwake() === undefined;
}
