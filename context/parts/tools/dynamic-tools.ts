import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { Kept, Memory } from "../../../extension/memory.ts";
import { DYNAMIC_TOOLS, type OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { TokenEstimator } from "../estimator/estimator.ts";
import type { PartStatus } from "../optimisation/part-states.ts";
import { ActiveSet, type StoredTools, storedTools, TOOLS_ENTRY } from "./active-set.ts";
import { allTools, isKept, isOurs, reachableTools } from "./catalogue.ts";
import { hasExposures, type Loadout, type PiTool } from "./pi-tools.ts";
import { builtInSynonyms, readSynonyms, type Synonyms } from "./synonyms.ts";
import { threeTools } from "./three-tools.ts";
import { type Activation, ToolSearch } from "./tool-search.ts";

const PART = "dynamicTools";
/** pi's own search tool, which declares the tools it finds. */
const NATIVE_SEARCH = "tool_search";

export interface DynamicToolsNeeds {
  readonly pi: Pick<ExtensionAPI, "getAllTools" | "getActiveTools" | "setActiveTools" | "registerTool" | "appendEntry">;
  readonly config: () => OptimisationConfig["dynamicTools"];
  readonly estimator: Pick<TokenEstimator, "text">;
  readonly taken: Kept<TakenTools>;
  readonly status: PartStatus;
  readonly fault: HostPort["fault"];
}

/** Three tools that find, describe and run all others, so that requests omit the declarations of the others. */
export function addDynamicTools({ on, onSession }: Pick<HostPort, "on" | "onSession">, needs: DynamicToolsNeeds): void {
  const part = new DynamicTools(needs);
  onSession((ctx) => part.settle(ctx), PART);
  // Extensions loaded after this one also register tools at the start of a session.
  on(PART, "before_agent_start", (_event, ctx) => part.settle(ctx));
  on(PART, "agent_start", () => part.record());
  on(PART, "turn_start", () => part.turnStarts());
  on(PART, "tool_execution_end", () => part.follow());
  on(PART, "agent_settled", (_event, ctx) => part.runEnds(ctx));
  needs.status.inspect((ctx) => part.report(ctx));
}

/** How tools are hidden from the model. `native`: by pi. `hiding`: requests omit declarations. `taking`: tools are inactive. */
type State = "off" | "native" | "hiding" | "taking";

/** Tools that this pi has deactivated in a session. */
export interface TakenTools {
  readonly sessionId: string;
  readonly names: ReadonlySet<string>;
}

/** The deactivated tools that outlive a reload of the modules. */
export function keptTools({ kept }: Pick<Memory, "kept">): Kept<TakenTools> {
  return kept.of("takenTools");
}

class DynamicTools {
  readonly #needs: DynamicToolsNeeds;
  readonly #set: ActiveSet;
  readonly #search: ToolSearch;
  #state: State = "off";
  #isRegistered = false;
  #synonyms: Synonyms = builtInSynonyms;
  /** The configuration with which the part cannot be on. */
  #refused: object | undefined;
  /** Whether the session's file does not have the current set yet. */
  #isUnrecorded = false;
  /** Change of the active set in this run. `open`: no request has shown it yet. */
  #change: "none" | "open" | "made" = "none";
  #isRestricted = false;
  readonly #wanted = new Set<string>();
  readonly #queued = new Set<string>();

  constructor(needs: DynamicToolsNeeds) {
    this.#needs = needs;
    this.#set = new ActiveSet(needs.pi, () => this.#config.keep);
    this.#search = new ToolSearch({
      pi: needs.pi,
      synonyms: () => this.#synonyms,
      taken: () => this.#set.taken,
      isDeclared: (tool) => this.#isDeclared(tool),
      activate: (name) => this.#activate(name),
      described: (names) => {
        for (const name of names) this.#wanted.add(name);
      },
    });
  }

  get #config() {
    return this.#needs.config();
  }

  /** Call between runs: applies the configuration from the next request on. */
  settle(ctx: ExtensionContext): void {
    const { enabled, mode, minTools } = this.#config;
    if (!enabled || mode === "off") {
      this.#turnOff(ctx);
      return;
    }
    if (this.#state !== "off") {
      this.follow();
      return;
    }
    const { pi } = this.#needs;
    const stored = storedTools(ctx);
    const tools = reachableTools(pi, new Set(stored?.taken));
    // A session that began with the three tools keeps them.
    if (tools.length < minTools && stored === undefined) return;
    if (this.#refused === this.#config) return;
    if (mode === "auto" && this.#turnNativeOn(tools)) return;
    this.#turnOn(ctx, stored);
  }

  /** Applies the state to tools that were registered later. */
  follow(): void {
    if (this.#state !== "taking") return;
    if (this.#set.follow()) this.#isUnrecorded = true;
    const { isRestricted } = this.#set;
    if (isRestricted === this.#isRestricted) return;
    this.#isRestricted = isRestricted;
    if (isRestricted)
      this.#degraded("The user or an extension has switched tools off, so undeclared tools are off as well.");
    else this.#needs.status.restored();
  }

  turnStarts(): void {
    if (this.#change === "open") this.#change = "made";
  }

  runEnds(ctx: ExtensionContext): void {
    this.#change = "none";
    this.#wanted.clear();
    this.follow();
    if (this.#queued.size > 0 && this.#state === "taking") {
      this.#give([...this.#queued]);
      // Uses up the one change of the next run.
      this.#change = "made";
    }
    this.#queued.clear();
    if (ctx.isIdle()) this.record();
  }

  /** Records the set in the session's file for a later pi. */
  record(): void {
    if (!this.#isUnrecorded) return;
    this.#isUnrecorded = false;
    this.#needs.pi.appendEntry(TOOLS_ENTRY, { v: 1, on: this.#state !== "off", ...this.#set.stored });
  }

  report(ctx: ExtensionContext) {
    const hidden = this.#hiddenTools();
    const hiddenTokens = hidden.reduce((sum, tool) => sum + this.#tokensOf(tool), 0);
    const requests = ctx.sessionManager
      .getEntries()
      .filter((entry) => entry.type === "message" && entry.message.role === "assistant").length;
    const savedTokens = hiddenTokens * requests;
    const { cacheRead = 0, input = 0 } = ctx.model?.cost ?? {};
    return {
      savedTokens,
      // Most requests would have read them from the cache.
      savedUsd: (savedTokens * (cacheRead > 0 ? cacheRead : input)) / 1_000_000,
      spentTokens: 0,
      spentUsd: 0,
      figures: { tools: this.#state, hiddenTools: hidden.length, hiddenTokens },
    };
  }

  #turnNativeOn(tools: readonly PiTool[]): boolean {
    const { pi } = this.#needs;
    const all = allTools(pi);
    if (!hasExposures(all) || !all.some(({ name }) => name === NATIVE_SEARCH)) return false;
    const active = pi.getActiveTools();
    const { keep } = this.#config;
    const isDeferred = ({ exposure }: PiTool): boolean => exposure === "deferred";
    const hideable = tools.filter(
      ({ name, exposure }) => !isKept(name, keep) && exposure !== "model-only" && name !== NATIVE_SEARCH,
    );
    if (hideable.length === 0 || !hideable.every(isDeferred)) return false;
    if (!active.includes(NATIVE_SEARCH)) pi.setActiveTools([...active, NATIVE_SEARCH]);
    this.#state = "native";
    return true;
  }

  #turnOn(ctx: ExtensionContext, stored: StoredTools | undefined): void {
    const { pi } = this.#needs;
    const { allowActivation, synonyms } = this.#config;
    const all = allTools(pi);
    const isHiding = hasExposures(all);
    if (!isHiding && !allowActivation) {
      this.#refuse("This pi cannot run one tool for another, so all tools stay declared.");
      return;
    }
    const foreign = all.find(({ name }) => isOurs(name) && !this.#isRegistered);
    if (foreign !== undefined) {
      this.#refuse(`Another extension has a tool named ${foreign.name}.`);
      return;
    }
    this.#synonyms = readSynonyms(synonyms, ctx.cwd, (reason) => this.#degraded(reason));
    this.#state = isHiding ? "hiding" : "taking";
    this.#register("model-only");
    const registered = allTools(pi).map(({ name }) => name);
    const missing = DYNAMIC_TOOLS.find((name) => !registered.includes(name));
    if (missing !== undefined) {
      this.#refuse(`The session's tools leave ${missing} out.`);
      this.#withdraw();
      return;
    }
    const active = pi.getActiveTools();
    const inactive = DYNAMIC_TOOLS.filter((name) => !active.includes(name));
    if (inactive.length > 0) pi.setActiveTools([...active, ...inactive]);
    if (!isHiding) {
      this.#set.take(stored);
      this.#needs.taken.value = { sessionId: ctx.sessionManager.getSessionId(), names: this.#set.taken };
    }
    this.#isUnrecorded = stored === undefined;
  }

  #turnOff(ctx: ExtensionContext): void {
    if (this.#state === "hiding" || this.#state === "taking") {
      this.#withdraw();
    } else if (this.#state === "off" && !hasExposures(allTools(this.#needs.pi))) {
      // The modules before a reload left their tools inactive. A new pi activates all; the file is not trusted for this.
      const taken = this.#needs.taken.value;
      this.#needs.taken.value = undefined;
      if (taken?.sessionId === ctx.sessionManager.getSessionId() && taken.names.size > 0) {
        this.#set.restore([...taken.names]);
        this.#isUnrecorded = true;
      }
    }
    this.#state = "off";
  }

  /** pi cannot remove a tool: newer versions hide it, older ones deactivate it. */
  #withdraw(): void {
    const wasTaking = this.#state === "taking";
    this.#state = "off";
    if (wasTaking) this.#set.restore();
    else this.#register("hidden");
    this.#isUnrecorded = true;
  }

  #register(exposure: "model-only" | "hidden"): void {
    const { pi } = this.#needs;
    for (const tool of threeTools(this.#search, (loadout) => this.#hidden(loadout))) {
      // pi's types lack plain schemas and the newer fields.
      pi.registerTool({ ...tool, exposure } as unknown as Parameters<typeof pi.registerTool>[0]);
    }
    this.#isRegistered = true;
  }

  /** The declarations that requests omit: none unless the model has the three tools. */
  #hidden({ declared, getExposure }: Loadout): readonly string[] {
    try {
      const names = declared.map(({ name }) => name);
      if (this.#state !== "hiding" || !DYNAMIC_TOOLS.every((name) => names.includes(name))) return [];
      const { keep } = this.#config;
      // An activated deferred tool stays declared.
      return names.filter((name) => !isKept(name, keep) && getExposure(name) === "direct");
    } catch (thrown) {
      this.#needs.fault("prepareLoadout", thrown, PART);
      return [];
    }
  }

  #isDeclared({ name, exposure }: PiTool): boolean {
    if (!this.#needs.pi.getActiveTools().includes(name)) return false;
    return this.#state !== "hiding" || exposure !== "direct" || isKept(name, this.#config.keep);
  }

  #hiddenTools(): readonly PiTool[] {
    if (this.#state === "off" || this.#state === "native") return [];
    const { pi } = this.#needs;
    const isUndeclaredAnyway = ({ exposure }: PiTool): boolean => exposure === "deferred" || exposure === "codemode";
    return reachableTools(pi, this.#set.taken).filter((tool) => !this.#isDeclared(tool) && !isUndeclaredAnyway(tool));
  }

  #tokensOf({ name, description, parameters }: PiTool): number {
    return this.#needs.estimator.text(JSON.stringify({ name, description, parameters }));
  }

  #activate(name: string): Activation {
    if (!this.#config.allowActivation || this.#state !== "taking" || !this.#set.taken.has(name)) return "never";
    if (this.#change === "made") {
      this.#queued.add(name);
      return "later";
    }
    this.#give([...this.#wanted, name]);
    this.#change = "open";
    return "now";
  }

  #give(names: readonly string[]): void {
    this.#set.give(names.filter((name) => this.#set.taken.has(name)));
    this.#isUnrecorded = true;
  }

  #refuse(reason: string): void {
    this.#refused = this.#config;
    this.#degraded(reason);
  }

  #degraded(reason: string): void {
    this.#needs.status.degraded(reason);
  }
}
