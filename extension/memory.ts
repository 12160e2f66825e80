import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { HelperConfig, PartsConfig } from "../protocol/link.ts";
import type { McpServer } from "../protocol/mcp-servers.ts";
import type { MarkedEntry } from "./delivery/branch.ts";
import type { HeldItem } from "./delivery/held.ts";
import type { TrackedDelivery } from "./delivery/tracker.ts";
import { nothingObserved, type Observation } from "./delivery/verdict.ts";
import { type ProviderWatch, type ReportedRequest, unwatched } from "./provider/reporter.ts";

/** Identity of the link to the daemon, fixed for the life of the process. */
export interface LinkIdentity {
  /** URL of the entry module that keeps the link. Another copy of the helper in the same pi leaves it alone. */
  readonly owner: string;
  readonly statusKey: string;
  /** The command that carries inward frames. Unguessable: any text that begins with it is executed. */
  readonly command: string;
}

/** A push in the transcript that has not been answered yet. */
export interface InsertedPush extends MarkedEntry {
  readonly isDelivered: boolean;
}

/** State of pi's run, more precise than `ctx.isIdle()`. */
export type RunPhase =
  | { readonly kind: "idle" }
  /** We asked pi to start a run. */
  | { readonly kind: "starting" }
  /**
   * pi processes a prompt. It starts a run soon, unless an extension handles the prompt; until then pi reports idle.
   */
  | { readonly kind: "prompting"; readonly since: number }
  | {
      readonly kind: "running";
      readonly signal: AbortSignal | undefined;
      readonly last: "completed" | "error" | "aborted";
      readonly isCompacted: boolean;
      /**
       * pi skips `agent_before_settle` when the run was aborted. Tracked only if {@link RunWatch.needsSettleHook} is
       * true.
       */
      readonly isBeforeSettleSeen: boolean;
    }
  /**
   * `agent_settled` was seen, and pi may still be notifying other extensions. It defers run starts and inward frames
   * until then, so the next frame proves that it is done.
   */
  | { readonly kind: "settling" };

/** A value of a part that outlives the modules. */
export interface Kept<T> {
  value: T | undefined;
}

/** The values that parts keep, by name. Only the part that owns a name knows the type of its value. */
export class KeptValues {
  readonly #values = new Map<string, Kept<unknown>>();

  of<T>(name: string): Kept<T> {
    const kept = this.#values.get(name) ?? { value: undefined };
    this.#values.set(name, kept);
    return kept as Kept<T>;
  }

  /** Whether a value with this name is kept. */
  has(name: string): boolean {
    return this.#values.get(name)?.value !== undefined;
  }
}

/** State that outlives the modules, which pi re-creates at each reload or replacement of the session. */
export interface Memory {
  link: LinkIdentity | undefined;
  sessionId: string | undefined;
  run: RunPhase;
  observation: Observation;
  /** Start a run for pushes in the transcript as soon as pi is idle. */
  isCarryWanted: boolean;
  watch: ProviderWatch;
  request: ReportedRequest | undefined;
  /** Deadline (`performance.now()`) for an expected context; requests wait for it. */
  contextDueBy: number | undefined;
  /** This pi must not make requests. */
  isOnlyAsked: boolean;
  /** Behaviour of `ctx.ui.custom()`. `undefined`: pi's own. */
  customUi: HelperConfig["customUi"];
  /** Configuration of the parts. `undefined`: none is active. */
  parts: PartsConfig | undefined;
  /** MCP servers, which each instance registers again: pi forgets them with the instance. */
  mcpServers?: readonly McpServer[];
  readonly kept: KeptValues;
  readonly held: Map<string, HeldItem>;
  readonly inserted: Map<string, InsertedPush>;
  readonly tracked: Map<string, TrackedDelivery>;
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
    contextDueBy: undefined,
    isOnlyAsked: false,
    customUi: undefined,
    parts: undefined,
    kept: new KeptValues(),
    held: new Map(),
    inserted: new Map(),
    tracked: new Map(),
  };
}

/** Version of {@link Memory} and the engine, which copies of these modules share. Different versions do not share. */
export const SHARED_VERSION = 7;

type Api = Pick<ExtensionAPI, "events">;

interface Claim {
  readonly memory: Memory;
  /** API of the extension instance that uses the memory; `undefined` when it has ended. */
  user: Api | undefined;
}

const key = Symbol.for(`pi-rpcd.memory.${SHARED_VERSION}`);

/** Kept by helpers of every version: its shape never changes. */
interface KeptLink extends LinkIdentity {
  /** API of the extension instance that uses the link. */
  user: Api;
}

const linksKey = Symbol.for("pi-rpcd.links");

function links(): KeptLink[] {
  const global = globalThis as { [linksKey]?: KeptLink[] };
  global[linksKey] ??= [];
  return global[linksKey];
}

/** Keeps the link for the next instance of the helper, whatever its version. */
export function keepLink(link: LinkIdentity, user: Api): void {
  const kept = links().find(({ command }) => command === link.command);
  if (kept === undefined) links().push({ ...link, user });
  else kept.user = user;
}

/**
 * The link that an ended instance of this entry module has left. If {@link isLinkKept} does not know it, the instance
 * was of another version: the package was upgraded under a running pi.
 */
export function leftLink(owner: string): LinkIdentity | undefined {
  return links().find((link) => link.owner === owner && !isAlive(link.user));
}

function claims(): Claim[] {
  const global = globalThis as { [key]?: Claim[] };
  global[key] ??= [];
  return global[key];
}

/** Whether a memory of this process holds the link of this entry module. */
export function isLinkKept(owner: string): boolean {
  return claims().some(({ memory }) => memory.link?.owner === owner);
}

/**
 * Returns the memory of the previous extension instances, or an empty one. A process may have several sessions with
 * their own extensions: memory in use is not shared.
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

/** Releases the memory. `forGood`: no extension instances will follow. */
export function releaseMemory(memory: Memory, forGood: boolean): void {
  const all = claims();
  const at = all.findIndex((claim) => claim.memory === memory);
  const claim = all[at];
  if (claim === undefined) return;
  claim.user = undefined;
  if (!forGood) return;
  all.splice(at, 1);
  const left = links().findIndex(({ command }) => command === memory.link?.command);
  if (left >= 0) links().splice(left, 1);
}

/** pi makes an extension's API throw after the extension has ended or failed to load. */
function isAlive(pi: Api): boolean {
  try {
    pi.events.emit("pi-rpcd.alive", undefined);
    return true;
  } catch {
    return false;
  }
}
