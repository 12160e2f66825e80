import { freemem } from "node:os";
import type { Logger } from "pino";
import { canonicalJson } from "../lib/canonical-json.ts";
import type { Child } from "./child.ts";
import type { ChildEnvironment } from "./child-environment.ts";
import { inputsOf } from "./pi-inputs.ts";
import type { PiOptions, PiProgram } from "./spawn-options.ts";

/** Options that only a start can set. A warm child fits sessions with exactly these options. */
export interface WarmKind {
  readonly program: PiProgram;
  readonly cwd: string;
  readonly options: PiOptions;
  /** Default: the daemon's own. */
  readonly environment?: ChildEnvironment | undefined;
}

export interface WarmPoolLimits {
  /** Warm children of one kind; 0: none. */
  readonly perKind: number;
  /** Of all kinds together. */
  readonly maxWarm: number;
  /** A kind is kept warm after two requests within this time, until there was no request for this time. */
  readonly recentMs: number;
  /** With less free memory no child is kept warm. */
  readonly minFreeBytes: number;
}

export interface WarmPoolOptions {
  readonly limits: WarmPoolLimits;
  readonly env: NodeJS.ProcessEnv;
  /** Starts a child of this kind without a session file. */
  readonly start: (kind: WarmKind, signal: AbortSignal) => Promise<Child>;
  readonly log: Logger;
  /** For tests. Default: the system's free memory. */
  readonly freeBytes?: () => number;
}

interface Warm {
  readonly child: Child;
  readonly inputs: string;
}

interface Kind {
  readonly kind: WarmKind;
  readonly ready: Warm[];
  starting: number;
  /** Time of the last request; the time before only counts as recent once. */
  wanted: number;
  isRecent: boolean;
}

/** Maximum number of known kinds; the least recently requested one is dropped first. */
const maxKinds = 256;

/**
 * Children that are ready before a session needs them, which saves most of a start. They have no session file; a
 * session that takes one switches it to its own. Only repeatedly requested kinds are kept, since each child takes as
 * much memory as an idle pi.
 */
export class WarmPool {
  readonly #options: WarmPoolOptions;
  readonly #kinds = new Map<string, Kind>();
  readonly #abandon = new AbortController();
  readonly #underWay = new Set<Promise<void>>();
  readonly #sweep: NodeJS.Timeout;

  constructor(options: WarmPoolOptions) {
    this.#options = options;
    this.#sweep = setInterval(() => this.#forgetOld(), Math.max(1_000, options.limits.recentMs / 4)).unref();
  }

  /** Number of warm children. */
  get size(): number {
    let size = 0;
    for (const { ready } of this.#kinds.values()) size += ready.length;
    return size;
  }

  /** Returns a ready and current child of this kind, if there is one. The caller owns it then. */
  async take(kind: WarmKind): Promise<Child | undefined> {
    const known = this.#kinds.get(keyOf(kind));
    if (known === undefined || known.ready.length === 0) return undefined;
    const inputs = await this.#inputs(kind);
    for (let warm = known.ready.shift(); warm !== undefined; warm = known.ready.shift()) {
      if (warm.inputs === inputs && warm.child.state.kind === "ready") return warm.child;
      this.#end(warm.child);
    }
    return undefined;
  }

  /**
   * A session has started or taken such a child. If it was not the first one recently, a child is started for the
   * next.
   */
  wanted(kind: WarmKind): void {
    const { perKind, recentMs } = this.#options.limits;
    if (perKind === 0 || this.#abandon.signal.aborted) return;
    const key = keyOf(kind);
    const now = performance.now();
    const known = this.#kinds.get(key);
    if (known === undefined) {
      if (this.#kinds.size >= maxKinds) this.#forget([...this.#kinds].sort(([, a], [, b]) => a.wanted - b.wanted)[0]);
      this.#kinds.set(key, { kind, ready: [], starting: 0, wanted: now, isRecent: false });
      return;
    }
    known.isRecent = now - known.wanted <= recentMs;
    known.wanted = now;
    if (known.isRecent) this.#warm(known);
  }

  /** Ends all warm children and keeps no more. Resolves when all their processes have ended. */
  async close(): Promise<void> {
    this.#abandon.abort();
    clearInterval(this.#sweep);
    this.#endAll();
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  /** Ends the child that has been warm for the longest time, to free memory for one that is needed. */
  shrink(): boolean {
    const oldest = [...this.#kinds.values()]
      .filter(({ ready }) => ready.length > 0)
      .sort((a, b) => a.wanted - b.wanted)[0];
    const warm = oldest?.ready.shift();
    if (warm === undefined) return false;
    this.#end(warm.child);
    return true;
  }

  #warm(known: Kind): void {
    const { perKind, maxWarm, minFreeBytes } = this.#options.limits;
    const starting = [...this.#kinds.values()].reduce((sum, kind) => sum + kind.starting, 0);
    if (known.ready.length + known.starting >= perKind || this.size + starting >= maxWarm) return;
    if ((this.#options.freeBytes ?? freemem)() < minFreeBytes) return;
    known.starting += 1;
    this.#track(
      this.#start(known).finally(() => {
        known.starting -= 1;
      }),
    );
  }

  async #start(known: Kind): Promise<void> {
    try {
      // Checked before the start: a later change makes the child stale.
      const inputs = await this.#inputs(known.kind);
      if (inputs === undefined) return;
      const child = await this.#options.start(known.kind, this.#abandon.signal);
      if (this.#abandon.signal.aborted || !known.isRecent) {
        this.#end(child);
        return;
      }
      known.ready.push({ child, inputs });
      void child.exited.then(() => {
        const at = known.ready.findIndex((warm) => warm.child === child);
        if (at !== -1) known.ready.splice(at, 1);
      });
    } catch (error) {
      // A session that needs such a child starts one itself, and gets the error. This kind must be requested twice
      // again.
      known.isRecent = false;
      this.#kinds.delete(keyOf(known.kind));
      if (!this.#abandon.signal.aborted) this.#options.log.warn({ err: error }, "cannot start a warm child");
    }
  }

  #forgetOld(): void {
    const oldest = performance.now() - this.#options.limits.recentMs;
    for (const entry of this.#kinds) if (entry[1].wanted < oldest) this.#forget(entry);
  }

  #forget(entry: readonly [string, Kind] | undefined): void {
    if (entry === undefined) return;
    const [key, known] = entry;
    known.isRecent = false;
    this.#kinds.delete(key);
    for (const { child } of known.ready.splice(0)) this.#end(child);
  }

  #endAll(): void {
    for (const known of this.#kinds.values()) for (const { child } of known.ready.splice(0)) this.#end(child);
  }

  #end(child: Child): void {
    this.#track(child.stop().then(() => child.cleaned));
  }

  #track(work: Promise<void>): void {
    this.#underWay.add(work);
    void work.finally(() => this.#underWay.delete(work));
  }

  async #inputs({ cwd, options }: WarmKind): Promise<string | undefined> {
    return await inputsOf({ cwd, env: this.#options.env, further: pathsIn(options) });
  }
}

/** Options that can be set in a running child are not part of its kind. */
function keyOf({ program, cwd, options, environment }: WarmKind): string {
  const { model: _model, thinking: _thinking, name: _name, ...rest } = options;
  return canonicalJson([program.path, program.version, cwd, rest, environment?.fingerprint ?? null]);
}

/** Files named in options: a child that has read them is stale when they change. */
function pathsIn(options: PiOptions): string[] {
  return Object.values(options)
    .flat()
    .filter((value): value is string => typeof value === "string" && value.startsWith("/"));
}
