import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { AuditMemory } from "../context/parts/cache/auditor.ts";
import type { PendingCuts } from "../context/parts/recall/pending-cuts.ts";
import type { HeldContext } from "../context/parts/structured/held-context.ts";
import type { GivenIds } from "../context/pruning/ids-registry.ts";
import type { HelperConfig, PartsConfig } from "../protocol/link.ts";
import type { MarkedEntry } from "./delivery/branch.ts";
import type { HeldItem } from "./delivery/held.ts";
import type { Tracked } from "./delivery/tracker.ts";
import { nothingObserved, type Observation } from "./delivery/verdict.ts";
import { type ProviderWatch, type ReportedRequest, unwatched } from "./provider/reporter.ts";

/** What the helper needs to be reached by its daemon, fixed for the life of the process. */
export interface LinkIdentity {
  /** URL of the entry module that keeps the link. Another copy of the helper in the same pi leaves it alone. */
  readonly owner: string;
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
      readonly isCompacted: boolean;
      /** pi skips `agent_before_settle` when the run was aborted. Looked for only where {@link RunWatch.asksForEnd} says so. */
      readonly isBeforeSettleSeen: boolean;
    }
  /**
   * `agent_settled` was seen, and pi may still be telling other extensions of it. It defers every start of a run and
   * every inward frame until they are through, so that the next frame proves that they are.
   */
  | { readonly kind: "settling" };

/** What must outlive the modules: pi creates them anew at each reload or replacement of the session. */
export interface Memory {
  link: LinkIdentity | undefined;
  sessionId: string | undefined;
  run: RunPhase;
  observation: Observation;
  /** A run is to be started for what stands in the transcript as soon as pi is idle. */
  isCarryWanted: boolean;
  watch: ProviderWatch;
  request: ReportedRequest | undefined;
  /** What stands in front of the conversation in each request, and in no file. */
  context: HeldContext | undefined;
  /** A context is to come until this `performance.now()`, and no request is made before it has. */
  contextDueBy: number | undefined;
  /** This pi is to make no request at all. */
  isOnlyAsked: boolean;
  /** What becomes of `ctx.ui.custom()`. `undefined`: as pi has it. */
  customUi: HelperConfig["customUi"];
  /** What the parts go by. `undefined`: none is on. */
  parts: PartsConfig | undefined;
  /** What is known of the session's requests and of the provider's cache. */
  audit: AuditMemory | undefined;
  /** Tools of a session that this pi has made inactive, of which a reload knows nothing. */
  takenTools: { readonly sessionId: string; readonly names: ReadonlySet<string> } | undefined;
  /** Cut results whose records may stand in no entry yet. */
  readonly cuts: PendingCuts;
  /** Ids of messages that no entry tells of yet. */
  messageIds: GivenIds | undefined;
  readonly held: Map<string, HeldItem>;
  readonly standing: Map<string, StandingPush>;
  readonly tracked: Map<string, Tracked>;
}

export function emptyMemory(): Memory {
  return {
    link: undefined,
    sessionId: undefined,
    run: { kind: "idle" },
    observation: nothingObserved,
    isCarryWanted: false,
    watch: unwatched,
    request: undefined,
    context: undefined,
    contextDueBy: undefined,
    isOnlyAsked: false,
    customUi: undefined,
    parts: undefined,
    audit: undefined,
    takenTools: undefined,
    cuts: new Map(),
    messageIds: undefined,
    held: new Map(),
    standing: new Map(),
    tracked: new Map(),
  };
}

/** The version of what copies of these modules share: {@link Memory} and the engine. Other versions keep apart. */
export const SHARED_VERSION = 3;

type Api = Pick<ExtensionAPI, "events">;

interface Claim {
  readonly memory: Memory;
  /** The life of the extensions that uses it; `undefined` when that has ended. */
  user: Api | undefined;
}

const key = Symbol.for(`pi-rpcd.memory.${SHARED_VERSION}`);

function claims(): Claim[] {
  const global = globalThis as { [key]?: Claim[] };
  global[key] ??= [];
  return global[key];
}

/** Whether some memory of this process has the link of this entry module. */
export function isLinkKept(owner: string): boolean {
  return claims().some(({ memory }) => memory.link?.owner === owner);
}

/**
 * The memory that the life before has left, else an empty one. A process may have several sessions, each with extensions
 * of its own: what a living one uses is not given away.
 */
export function claimMemory(pi: Api): Memory {
  const left = claims().find(({ user }) => user === undefined || !isAlive(user));
  if (left !== undefined) {
    left.user = pi;
    return left.memory;
  }
  const memory = emptyMemory();
  claims().push({ memory, user: pi });
  return memory;
}

/** This life ends. `forGood`: nobody will come after it. */
export function releaseMemory(memory: Memory, forGood: boolean): void {
  const all = claims();
  const at = all.findIndex((claim) => claim.memory === memory);
  const claim = all[at];
  if (claim === undefined) return;
  claim.user = undefined;
  if (forGood) all.splice(at, 1);
}

/** pi makes an extension's API throw when its life has ended, or when its loading has failed. */
function isAlive(pi: Api): boolean {
  try {
    pi.events.emit("pi-rpcd.alive", undefined);
    return true;
  } catch {
    return false;
  }
}
