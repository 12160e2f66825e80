import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { unlessAborted, within } from "../lib/deadline.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { Child } from "../pi/child.ts";
import { privateBytes } from "../pi/processes.ts";
import type { ChildSupervisor } from "./child-supervisor.ts";

export interface OccupancyLimits {
  /** Children of sessions and warm ones together, also those that start. */
  readonly maxChildren: number;
  /** Their memory together, without what they share. */
  readonly maxChildrenBytes: number;
  /** How long a start may wait for a place. */
  readonly placeTimeoutMs: number;
  /**
   * A child whose end takes longer is not waited for alone: the next idle one is ended meanwhile. For memory that is done
   * only while the child has not been found idle.
   */
  readonly endPatienceMs: number;
  /** How often sessions are looked at, also by a start that waits for a place. */
  readonly lookEveryMs: number;
  /** How often memory is. */
  readonly weighEveryMs: number;
}

export interface OccupancyOptions {
  readonly limits: OccupancyLimits;
  readonly sessions: () => Iterable<{ readonly sessionId: string; readonly supervisor: ChildSupervisor }>;
  /** How many children wait for a session. */
  readonly warm: () => number;
  /** Ends one of them. Gives whether there was one. */
  readonly shrinkWarm: () => boolean;
  readonly log: Logger;
  /** For tests. Default: what the system says. */
  readonly bytesOf?: (pids: readonly number[]) => Promise<number>;
}

/** With less time left than this no child is ended for a start: it would be gone too late for it. */
const shortestEndMs = 50;

/** The end of an idle child, for a place or its memory. */
interface End {
  /** By the clock of `performance.now`. */
  readonly since: number;
  /** Whether the child was found idle and is being ended, which is sure to come about. */
  isSure: boolean;
  /** Whether it has ended. Never rejects. */
  done: Promise<boolean>;
}

/**
 * How many children there are and may be. Idle ones end when they were idle for too long, and earlier where their place or
 * their memory is needed: those first that were used longest ago.
 */
export class Occupancy {
  readonly #options: OccupancyOptions;
  readonly #children = new Set<Child>();
  readonly #timer: NodeJS.Timeout;
  /** Starts that have their place. */
  #admitted = 0;
  /** The search for a place that is on; the next one begins behind it, so that no child ends for two. */
  #searching: Promise<unknown> = Promise.resolve();
  readonly #ends = new Map<ChildSupervisor, End>();
  #changed: Deferred<void> = deferred();
  #weighedAt = 0;
  /** What the children weighed when that was last looked at. */
  bytes = 0;
  /** Children that were started, and that ended unasked, ever. */
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

  /** Whether one more child may be started as it is. */
  get hasPlace(): boolean {
    return this.#children.size + this.#admitted + this.#options.warm() < this.#options.limits.maxChildren;
  }

  /**
   * Starts a child once there is a place for it, for which idle children are ended. Throws `overloaded` when none became
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
      // It may have found one at that very moment.
      search.then(
        () => {
          this.#admitted -= 1;
        },
        () => {},
      );
      throw error;
    }
  }

  /** Some session is not as it was: a place may have become free. */
  changed(): void {
    this.#changed.resolve();
    this.#changed = deferred();
  }

  /** Looks at every session: which child is silent, which has been idle for too long, and what all weigh together. */
  look(now = performance.now()): Promise<void> {
    const failed = (error: unknown): void =>
      this.#options.log.error({ err: error }, "the sessions could not be looked at");
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
    // A few at a time: what they weighed goes with their end.
    for (let ended = 0; ended < 16; ended += 1) {
      const bytes = await bytesOf([...this.#children].map(({ pid }) => pid));
      this.bytes = bytes;
      if (bytes <= limits.maxChildrenBytes) return;
      if (this.#options.shrinkWarm()) continue;
      if (!(await this.#endOne())) {
        log.warn({ bytes, maxBytes: limits.maxChildrenBytes }, "children hold more memory than they may, and all work");
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
      // Each was asked once. They are asked again when anything has changed since the first of them was, and now and then,
      // since not all that keeps a child says when it ends: a subscriber, a call. The last time lies before the deadline.
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

  /** Ends one idle child, and further ones while none of those has said that it ends. Gives whether one has ended. */
  async #endOne(): Promise<boolean> {
    const tried = new Set<ChildSupervisor>();
    const slow: Promise<boolean>[] = [];
    const { promise: one, resolve } = Promise.withResolvers<true>();
    for (let end = this.#endOldest(tried); end !== undefined; end = this.#endOldest(tried)) {
      void end.done.then((hasEnded) => hasEnded && resolve(true));
      const first = Promise.race([one, end.done]);
      const waited = await within(first, end.since + this.#options.limits.endPatienceMs - performance.now());
      // There is no hurry: one that is being ended frees its memory, and none is ended besides.
      const hasEnded = waited.kind === "done" ? waited.value : end.isSure && (await first);
      if (hasEnded) return true;
      if (waited.kind === "timeout") slow.push(end.done);
    }
    return await Promise.race([one, Promise.all(slow).then((all) => all.includes(true))]);
  }

  /**
   * The end of a child that can be waited for: one that has just begun, else that of the idle child which was used longest
   * ago and was not `tried`. A child that is stopped or hangs keeps no other from being ended.
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
      this.#options.log.info({ err: error }, "a child that was to hibernate ended by itself");
      return false;
    }
  }
}

/** Whether nothing needs the child, as far as the daemon knows. */
function isSpare({ hibernation }: ChildSupervisor): boolean {
  return hibernation.keepsAwake() === undefined;
}
