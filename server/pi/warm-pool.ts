import { freemem } from "node:os";
import type { Logger } from "pino";
import { canonicalJson } from "../lib/canonical-json.ts";
import type { Child } from "./child.ts";
import type { PiProgram } from "./locate.ts";
import { inputsOf } from "./pi-inputs.ts";
import type { PiOptions } from "./spawn-options.ts";

/** What only a start can set. A warm child is for sessions that want exactly this. */
export interface WarmKind {
  readonly program: PiProgram;
  readonly cwd: string;
  readonly options: PiOptions;
}

export interface WarmPoolLimits {
  /** Children of one kind that wait; 0: none ever. */
  readonly perKind: number;
  /** Of all kinds together. */
  readonly maxWarm: number;
  /** A kind is kept warm when it was wanted twice within this time, and until it was not wanted for so long. */
  readonly recentMs: number;
  /** With less memory free nothing is kept warm. */
  readonly minFreeBytes: number;
}

export interface WarmPoolOptions {
  readonly limits: WarmPoolLimits;
  readonly env: NodeJS.ProcessEnv;
  /** Starts a child of this kind without a session file. */
  readonly start: (kind: WarmKind, signal: AbortSignal) => Promise<Child>;
  readonly log: Logger;
  /** For tests. Default: what the system has. */
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
  /** When it was wanted last; the time before only counts as recent once. */
  wanted: number;
  isRecent: boolean;
}

/** Kinds that are known at a time; the one that was wanted longest ago is forgotten for another. */
const maxKinds = 256;

/**
 * Children that are ready before a session wants them, which saves most of a start. They have no session file; the session
 * that takes one has it switch to its own. Only kinds are kept that are wanted again and again, since each costs what an
 * idle pi costs.
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

  /** How many wait. */
  get size(): number {
    let size = 0;
    for (const { ready } of this.#kinds.values()) size += ready.length;
    return size;
  }

  /** A child that is ready and as a start would make it now, if there is one. It is the caller's then. */
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

  /** A session has such a child now. If it was not the first one lately, the next finds one ready. */
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

  /** Ends all that wait and refuses to keep more. Resolves when nothing of them is left. */
  async close(): Promise<void> {
    this.#abandon.abort();
    clearInterval(this.#sweep);
    this.#endAll();
    while (this.#underWay.size > 0) await Promise.all(this.#underWay);
  }

  /** Ends the one that has waited longest for a session, to give its memory to a child that is needed. */
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
      // Looked at before the start: what changes meanwhile makes the child stale.
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
      // A session that wants such a child starts one itself, and hears why it fails. This kind has to prove itself again.
      known.isRecent = false;
      this.#kinds.delete(keyOf(known.kind));
      if (!this.#abandon.signal.aborted) this.#options.log.warn({ err: error }, "no child could be kept warm");
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

/** What can be set in a child that runs is no part of its kind. */
function keyOf({ program, cwd, options }: WarmKind): string {
  const { model: _model, thinking: _thinking, name: _name, ...rest } = options;
  return canonicalJson([program.path, program.version, cwd, rest]);
}

/** Options that name files, whatever they are called: a child that has read them is stale when they change. */
function pathsIn(options: PiOptions): string[] {
  return Object.values(options)
    .flat()
    .filter((value): value is string => typeof value === "string" && value.startsWith("/"));
}
