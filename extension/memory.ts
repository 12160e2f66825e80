import type { MarkedEntry } from "./delivery/branch.ts";
import type { HeldItem } from "./delivery/held.ts";
import { nothingObserved, type Observation } from "./delivery/verdict.ts";
import { type ProviderWatch, unwatched, type WatchedRequest } from "./provider/reporter.ts";

/** What the helper needs to be reached by its daemon, fixed for the life of the process. */
export interface LinkIdentity {
  readonly statusKey: string;
  /** The command that carries inward frames. Unguessable: any text that begins with it is executed. */
  readonly command: string;
}

/** A push that stands in the transcript and has not been answered yet. */
export interface StandingPush extends MarkedEntry {
  readonly isDelivered: boolean;
}

/** What is known of pi's run beyond `ctx.isIdle()`. */
export type RunPhase =
  | { readonly kind: "idle" }
  /** We have had pi start one. */
  | { readonly kind: "starting" }
  /** pi looks into a prompt. It starts a run soon, unless an extension takes the prompt; until then pi calls itself idle. */
  | { readonly kind: "prompting"; readonly since: number }
  | {
      readonly kind: "running";
      readonly signal: AbortSignal | undefined;
      readonly last: "completed" | "error" | "aborted";
      /** pi skips `agent_before_settle` when the run was aborted. */
      readonly isBeforeSettleSeen: boolean;
    }
  /**
   * `agent_settled` was seen, and pi may still be telling other extensions of it. It defers every start of a run and
   * every inward frame until they are through, so that the next frame proves that they are.
   */
  | { readonly kind: "settling" };

/** What must outlive this module: pi creates all modules of an extension anew at each reload or replacement of the session. */
export interface Memory {
  /** URL of the entry module that owns the link. Another copy of the helper in the same pi does nothing. */
  owner: string | undefined;
  link: LinkIdentity | undefined;
  sessionId: string | undefined;
  run: RunPhase;
  observation: Observation;
  /** A run is to be started for what stands in the transcript as soon as pi is idle. */
  isCarryWanted: boolean;
  watch: ProviderWatch;
  request: WatchedRequest | undefined;
  readonly held: Map<string, HeldItem>;
  readonly standing: Map<string, StandingPush>;
}

const key = Symbol.for("pi-rpcd.helper");

/** The process's one memory. */
export function processMemory(): Memory {
  const global = globalThis as { [key]?: Memory };
  global[key] ??= emptyMemory();
  return global[key];
}

export function emptyMemory(): Memory {
  return {
    owner: undefined,
    link: undefined,
    sessionId: undefined,
    run: { kind: "idle" },
    observation: nothingObserved,
    isCarryWanted: false,
    watch: unwatched,
    request: undefined,
    held: new Map(),
    standing: new Map(),
  };
}
