import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { unlessAborted, within } from "../lib/deadline.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { Child } from "../pi/child.ts";
import { privateBytes } from "../pi/processes.ts";
import type { Upkeep } from "./upkeep.ts";

export interface OccupancyLimits {
  /** Children of sessions and warm ones together, also those that start. */
  readonly maxChildren: number;
  /** Their memory together, without what they share. */
  readonly maxChildrenBytes: number;
  /** How long a start may wait for a place. */
  readonly placeTimeoutMs: number;
  /** How often sessions are looked at. */
  readonly lookEveryMs: number;
  /** How often memory is. */
  readonly weighEveryMs: number;
}

export interface OccupancyOptions {
  readonly limits: OccupancyLimits;
  readonly sessions: () => Iterable<{ readonly sessionId: string; readonly upkeep: Upkeep }>;
  /** How many children wait for a session. */
  readonly warm: () => number;
  /** Ends one of them. Gives whether there was one. */
  readonly shrinkWarm: () => boolean;
  readonly log: Logger;
  /** For tests. Default: what the system says. */
  readonly bytesOf?: (pids: readonly number[]) => Promise<number>;
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
    this.#tending ??= this.#look(now)
      .catch((error: unknown) => this.#options.log.error({ err: error }, "the sessions could not be looked at"))
      .finally(() => {
        this.#tending = undefined;
      });
    return this.#tending;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #look(now: number): Promise<void> {
    const due: Upkeep[] = [];
    for (const { upkeep } of this.#options.sessions()) {
      upkeep.look();
      if (upkeep.hibernation.isDue(now) && upkeep.hibernation.keepsAwake() === undefined) due.push(upkeep);
    }
    for (const upkeep of due) await this.#end(upkeep);
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
      if (!(await this.#endOldest())) {
        log.warn({ bytes, maxBytes: limits.maxChildrenBytes }, "children hold more memory than they may, and all work");
        return;
      }
    }
  }

  async #findPlace(deadline: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    while (!this.hasPlace) {
      const changed = this.#changed.promise;
      if (this.#options.shrinkWarm() || (await this.#endOldest())) continue;
      const left = deadline - performance.now();
      if (left <= 0 || (await unlessAborted(within(changed, left), signal)).kind === "timeout") {
        throw this.#overloaded();
      }
    }
    this.#admitted += 1;
  }

  #overloaded(): WireError {
    const { maxChildren } = this.#options.limits;
    const message = `${maxChildren} pi processes run, which is the limit, and each of them is needed. Try again later.`;
    return new WireError("overloaded", message, { retryAfterMs: 5_000, maxChildren });
  }

  /** Ends the idle child that was used longest ago. Gives whether there was one. */
  async #endOldest(): Promise<boolean> {
    const idle = [...this.#options.sessions()]
      .map(({ upkeep }) => upkeep)
      .filter(({ hibernation }) => hibernation.child !== undefined && hibernation.keepsAwake() === undefined)
      .sort((a, b) => a.hibernation.lastUsedAt - b.hibernation.lastUsedAt);
    for (const upkeep of idle) if (await this.#end(upkeep)) return true;
    return false;
  }

  async #end({ hibernation }: Upkeep): Promise<boolean> {
    try {
      const outcome = await hibernation.fallAsleep();
      if (typeof outcome === "string") return false;
      await outcome.ended;
      return true;
    } catch (error) {
      this.#options.log.info({ err: error }, "a child that was to hibernate ended by itself");
      return false;
    }
  }
}
