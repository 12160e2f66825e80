import type {
  AfterProviderResponseEvent,
  CacheWarmingDecisionEvent,
  CacheWarmingDecisionEventResult,
  ContextEvent,
  ExtensionAPI,
  ExtensionContext,
  MessageUpdateEvent,
  ToolResultEvent,
} from "@earendil-works/pi-coding-agent";
import type { AgentMessage } from "./pi-types.ts";

/** Input of each hook's stages. `returns`: what a stage may return instead. */
interface Hooks {
  context: { readonly value: ContextEvent; readonly returns: never };
  context_with_system: { readonly value: readonly AgentMessage[]; readonly returns: readonly AgentMessage[] };
  before_provider_request: { readonly value: unknown; readonly returns: unknown };
  after_provider_response: { readonly value: AfterProviderResponseEvent; readonly returns: never };
  message_start: { readonly value: AgentMessage; readonly returns: never };
  message_update: { readonly value: MessageUpdateEvent; readonly returns: never };
  message_end: { readonly value: AgentMessage; readonly returns: AgentMessage };
  tool_result: { readonly value: ToolResultEvent; readonly returns: ToolResultEvent };
  cache_warming_decision: { readonly value: CacheWarmingDecisionEvent; readonly returns: CacheWarmingDecisionEvent };
}
export type PipelineHook = keyof Hooks;

/** Order of the stages in each hook. Names without a stage are skipped. */
export const stageOrder = {
  context: ["map"],
  context_with_system: [
    "head",
    "carrier",
    "blocks",
    "bash",
    "prefix",
    "sections",
    "legal",
    "tags",
    "nudge",
    "audit",
    "offer",
  ],
  before_provider_request: ["tools", "marks", "audit", "presence"],
  after_provider_response: ["verdict"],
  message_start: ["verdict"],
  message_update: ["verdict"],
  message_end: ["strip", "learn", "verdict"],
  tool_result: ["cap"],
  cache_warming_decision: ["verdict"],
} as const satisfies Readonly<Record<PipelineHook, readonly string[]>>;

export type StageName<H extends PipelineHook> = (typeof stageOrder)[H][number];

/**
 * Reads a part of a request and may return a replacement for the later stages and pi. Must not modify its input. A
 * stage that throws is skipped, and the request continues without it.
 */
export type Stage<H extends PipelineHook> = (
  value: Hooks[H]["value"],
  ctx: ExtensionContext,
) => Hooks[H]["returns"] | undefined | void;

interface AnyStage {
  /** Owner of the stage, if several parts share the name. */
  readonly part: string | undefined;
  readonly run: (value: unknown, ctx: ExtensionContext) => unknown;
}

/** Makes a request wait. `undefined`: it need not wait. */
type Gate = (ctx: ExtensionContext) => Promise<void> | undefined;

/** Receives errors. `part`: the named part that threw and was skipped. */
export type Fault = (where: string, thrown: unknown, part?: string) => void;

/** Owns the hooks around a request to the model. */
export class RequestPipeline {
  readonly #stages = new Map<PipelineHook, Map<string, readonly AnyStage[]>>();
  readonly #fault: Fault;
  #pi: ExtensionAPI | undefined;
  readonly #gates: Gate[] = [];

  constructor(fault: Fault) {
    this.#fault = fault;
  }

  /**
   * Adds a stage. Parts that share a stage name must pass their own name; their stages run in order of registration,
   * one for each part.
   */
  use<H extends PipelineHook>(hook: H, name: StageName<H>, stage: Stage<H>, part?: string): void {
    const stages = this.#stages.get(hook) ?? new Map<string, readonly AnyStage[]>();
    const existing = stages.get(name) ?? [];
    if (existing.some((other) => other.part === part)) throw new Error(`The stage ${hook}/${name} already exists.`);
    const isFirst = stages.size === 0;
    this.#stages.set(hook, stages.set(name, [...existing, { part, run: stage as AnyStage["run"] }]));
    if (isFirst && this.#pi !== undefined) this.#subscribe[hook](this.#pi);
  }

  /** Makes each request wait for the promise of `gate`, if any, before its stages run. Gates run in order. */
  wait(gate: Gate): void {
    this.#gates.push(gate);
  }

  /** Runs a hook's stages on a value. Returns the value itself if no stage replaced it. */
  run<H extends PipelineHook>(hook: H, value: Hooks[H]["value"], ctx: ExtensionContext): Hooks[H]["value"] {
    const stages = this.#stages.get(hook);
    let current: unknown = value;
    for (const name of stages === undefined ? [] : stageOrder[hook]) {
      for (const { part, run } of stages?.get(name) ?? []) {
        try {
          const returned = run(current, ctx);
          if (returned !== undefined) current = returned;
        } catch (thrown) {
          this.#fault(part === undefined ? `${hook}/${name}` : `${hook}/${name}/${part}`, thrown, part);
        }
      }
    }
    return current as Hooks[H]["value"];
  }

  /** A gate that is added during the wait is awaited as well. */
  #awaitGates(ctx: ExtensionContext, from = 0): Promise<void> | undefined {
    for (let at = from; at < this.#gates.length; at++) {
      try {
        const opened = this.#gates[at]?.(ctx);
        const next = () => this.#awaitGates(ctx, at + 1);
        if (opened !== undefined) return opened.then(next, next);
      } catch (thrown) {
        this.#fault("context_with_system/wait", thrown);
      }
    }
    return undefined;
  }

  /** Subscribes to the hooks that have stages, and to others when they get their first. */
  install(pi: ExtensionAPI): void {
    this.#pi = pi;
    for (const hook of this.#stages.keys()) this.#subscribe[hook](pi);
  }

  readonly #subscribe: Readonly<Record<PipelineHook, (pi: ExtensionAPI) => void>> = {
    context: (pi) => void pi.on("context", (event, ctx) => void this.run("context", event, ctx)),
    context_with_system: (pi) =>
      void pi.on("context_with_system", ({ messages }, ctx) => {
        const answer = () => {
          const made = this.run("context_with_system", messages, ctx);
          return made === messages ? undefined : { messages: [...made] };
        };
        const opened = this.#awaitGates(ctx);
        return opened === undefined ? answer() : opened.then(answer, answer);
      }),
    before_provider_request: (pi) =>
      void pi.on("before_provider_request", ({ payload }, ctx) => {
        const made = this.run("before_provider_request", payload, ctx);
        return made === payload ? undefined : made;
      }),
    after_provider_response: (pi) =>
      void pi.on("after_provider_response", (event, ctx) => void this.run("after_provider_response", event, ctx)),
    message_start: (pi) =>
      void pi.on("message_start", ({ message }, ctx) => void this.run("message_start", message, ctx)),
    message_update: (pi) => void pi.on("message_update", (event, ctx) => void this.run("message_update", event, ctx)),
    message_end: (pi) =>
      void pi.on("message_end", ({ message }, ctx) => {
        const made = this.run("message_end", message, ctx);
        return made === message ? undefined : { message: made };
      }),
    tool_result: (pi) =>
      void pi.on("tool_result", (event, ctx) => {
        const made = this.run("tool_result", event, ctx);
        if (made === event) return undefined;
        const { content, details, isError, usage } = made;
        // Since 0.99 pi drops it if content is returned without it.
        const structured = "structuredContent" in made ? { structuredContent: made.structuredContent } : {};
        return { content, details, isError, ...(usage === undefined ? {} : { usage }), ...structured };
      }),
    cache_warming_decision: (pi) =>
      void pi.on("cache_warming_decision", (event, ctx): CacheWarmingDecisionEventResult | undefined => {
        const made = this.run("cache_warming_decision", event, ctx);
        return made === event ? undefined : { action: made.action };
      }),
  };
}
