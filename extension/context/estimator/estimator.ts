import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { Places } from "../../engine-port.ts";
import { type AgentMessage, isObject } from "../../pi-types.ts";
import type { Workbench } from "../optimisation/workbench.ts";
import { reportOf, reportsOf, tailOf } from "./branch.ts";
import { addCounts, Counter, type Counts, noCounts } from "./counts.ts";
import { dot, Factors, namedFactors } from "./factors.ts";

/** Counts tokens for every decision of every part. */
export interface TokenEstimator {
  /** By the factors of the session's model. */
  text(text: string): number;
  /** As pi sends it. Counts are kept by the object and by the content. */
  message(message: AgentMessage): number;
  /**
   * Of a request with these messages: what was reported last, and what has come and gone since. Messages without those of
   * the role `system` are counted with the prompt and the tools of the last request.
   */
  request(messages: readonly AgentMessage[], ctx: ExtensionContext): number;
  /** Of the next request, by what stands on the branch: what was reported last, what came since, and edits since. */
  context(ctx: ExtensionContext): number;
  /** The estimate is to be at its best near this number of tokens. `undefined`: there is none now. */
  near(threshold: (ctx: ExtensionContext) => number | undefined): void;
  /** Waits for the tokenizer, where the context is near a threshold and one is configured. */
  refined(ctx: ExtensionContext): Promise<void> | undefined;
}

/** What a request had, as far as it can be counted here. */
interface Sent {
  readonly model: string;
  /** By the messages' keys. */
  readonly messages: ReadonlyMap<string, { readonly message: AgentMessage; readonly times: number }>;
  readonly counts: Counts;
  readonly images: number;
  /** Tokens without those of the role `system`. */
  readonly withoutSystem: Counts;
  /** Their JSON's length: other tools make two requests incomparable. */
  readonly toolsLength: number;
  readonly knownExactly: number;
  readonly expected: number;
}

type Anchor = Sent & { readonly reported: number };

/** Of how many predictions the errors are told. */
const maxErrors = 200;

interface EstimatorOptions {
  readonly places: Places;
  readonly config: () => OptimisationConfig["estimator"];
  readonly inspect: Workbench["inspect"];
}

export function createEstimator(options: EstimatorOptions): TokenEstimator {
  const estimator = new Estimator(options);
  const { places } = options;
  places.pipeline.use("context_with_system", "offer", (messages, ctx) => estimator.sending(messages, ctx), "estimator");
  places.pipeline.use("before_provider_request", "audit", (payload) => estimator.payload(payload), "estimator");
  places.pipeline.use("message_end", "learn", (message) => estimator.learn(message), "estimator");
  places.onSession(() => estimator.sessionStarted(), "estimator");
  options.inspect("estimator", () => estimator.report());
  return estimator;
}

class Estimator implements TokenEstimator {
  readonly #places: Places;
  readonly #config: EstimatorOptions["config"];
  readonly #counter: Counter;
  readonly #factors = new Factors(() => this.#config().window);
  readonly #errors: number[] = [];
  readonly #thresholds: ((ctx: ExtensionContext) => number | undefined)[] = [];
  #model = "";
  #sending: Sent | undefined;
  #anchor: Anchor | undefined;
  #toolsLength = 0;
  /** The models for which the branch was read. */
  readonly #read = new Set<string>();

  constructor({ places, config }: EstimatorOptions) {
    this.#places = places;
    this.#config = config;
    this.#counter = new Counter(config().cacheEntries);
  }

  text(text: string): number {
    return Math.ceil(dot(this.#counter.text(text), this.#current()));
  }

  message(message: AgentMessage): number {
    const { counts, images } = this.#counter.message(message);
    return Math.ceil(this.#tokens(counts, images, this.#current()));
  }

  request(messages: readonly AgentMessage[], ctx: ExtensionContext): number {
    const factors = this.#of(ctx);
    const anchor = this.#anchor;
    const hasSystem = messages.some(({ role }) => role === "system");
    if (anchor === undefined || anchor.model !== this.#model) {
      const tokens = this.#sum(messages, factors);
      return Math.ceil(tokens + (hasSystem ? 0 : this.#around(ctx, factors)));
    }
    const counts = noCounts();
    let images = 0;
    const left = new Map([...anchor.messages].map(([key, { times }]) => [key, times]));
    for (const message of messages) {
      const { key, ...counted } = this.#counter.message(message);
      const times = left.get(key) ?? 0;
      if (times > 0) {
        left.set(key, times - 1);
        continue;
      }
      addCounts(counts, counted.counts);
      images += counted.images;
    }
    for (const [key, times] of left) {
      const message = anchor.messages.get(key)?.message;
      if (times === 0 || message === undefined || (!hasSystem && message.role === "system")) continue;
      const counted = this.#counter.message(message);
      addCounts(counts, counted.counts, -times);
      images -= counted.images * times;
    }
    return Math.max(0, Math.ceil(anchor.reported + this.#tokens(counts, images, factors)));
  }

  context(ctx: ExtensionContext): number {
    const factors = this.#of(ctx);
    const { reported, added, edits } = tailOf(ctx.sessionManager);
    if (reported === undefined) {
      const { messages } = ctx.sessionManager.buildSessionProjection();
      return Math.ceil(
        this.#sum(
          messages.filter(({ role }) => role !== "system"),
          factors,
        ) + this.#around(ctx, factors),
      );
    }
    let tokens = reported.input + (reported.output ?? this.#one(reported.message, factors));
    for (const message of added) tokens += this.#one(message, factors);
    for (const { was, is } of edits) {
      tokens += (is === undefined ? 0 : this.#one(is, factors)) - this.#one(was, factors);
    }
    return Math.max(0, Math.ceil(tokens));
  }

  near(threshold: (ctx: ExtensionContext) => number | undefined): void {
    this.#thresholds.push(threshold);
  }

  refined(_ctx: ExtensionContext): Promise<void> | undefined {
    return undefined;
  }

  sessionStarted(): void {
    this.#sending = undefined;
    this.#anchor = undefined;
    this.#read.clear();
  }

  /** A request is about to be made of these messages. */
  sending(messages: readonly AgentMessage[], ctx: ExtensionContext): void {
    const expected = this.#anchor === undefined ? Number.NaN : this.request(messages, ctx);
    this.#of(ctx);
    const byKey = new Map<string, { readonly message: AgentMessage; readonly times: number }>();
    const counts = noCounts();
    const withoutSystem = noCounts();
    let images = 0;
    for (const message of messages) {
      const counted = this.#counter.message(message);
      byKey.set(counted.key, { message, times: (byKey.get(counted.key)?.times ?? 0) + 1 });
      addCounts(counts, counted.counts);
      if (message.role !== "system") addCounts(withoutSystem, counted.counts);
      images += counted.images;
    }
    this.#sending = {
      model: this.#model,
      messages: byKey,
      counts,
      images,
      withoutSystem,
      toolsLength: this.#toolsLength,
      knownExactly: this.#counter.knownExactly,
      expected,
    };
  }

  /** Requests that only keep the cache warm come here too, with the tools of the others. */
  payload(payload: unknown): void {
    this.#toolsLength = lengthOfTools(payload);
    if (this.#sending !== undefined) this.#sending = { ...this.#sending, toolsLength: this.#toolsLength };
  }

  learn(message: AgentMessage): void {
    if (message.role !== "assistant") return;
    const sent = this.#sending;
    this.#sending = undefined;
    const report = reportOf(message);
    if (sent === undefined || report === undefined || report.model !== sent.model) return;
    const before = this.#anchor;
    if (Number.isFinite(sent.expected)) {
      this.#errors.push(Math.abs(sent.expected - report.input) / report.input);
      if (this.#errors.length > maxErrors) this.#errors.shift();
    }
    this.#anchor = { ...sent, reported: report.input };
    if (before === undefined || before.model !== sent.model || before.images !== sent.images) return;
    if (before.toolsLength !== sent.toolsLength || before.knownExactly !== this.#counter.knownExactly) return;
    const counts = Float64Array.from(sent.counts);
    addCounts(counts, before.counts, -1);
    this.#factors.learn(sent.model, counts, report.input - before.reported);
  }

  report(): ReturnType<Parameters<Workbench["inspect"]>[1]> {
    const sorted = this.#errors.toSorted((a, b) => a - b);
    const at = (share: number): number | null => sorted[Math.floor(share * (sorted.length - 1))] ?? null;
    const named = Object.entries(namedFactors(this.#current())).map(([name, factor]) => [`factor.${name}`, factor]);
    return {
      savedTokens: 0,
      savedUsd: 0,
      spentTokens: 0,
      spentUsd: 0,
      figures: {
        tokenizer: this.#config().tokenizer,
        predictions: sorted.length,
        errorMedian: at(0.5),
        errorP95: at(0.95),
        learntFrom: this.#factors.seen(this.#model),
        textsRemembered: this.#counter.remembered,
        ...Object.fromEntries(named),
      },
    };
  }

  /** The factors of the session's model, of which the branch may tell what the session's former pi had learnt. */
  #of(ctx: ExtensionContext): Counts {
    if (ctx.model !== undefined) this.#model = `${ctx.model.provider}/${ctx.model.id}`;
    if (!this.#read.has(this.#model)) {
      this.#read.add(this.#model);
      if (this.#factors.seen(this.#model) === 0) this.#learnFromBranch(ctx);
    }
    return this.#factors.of(this.#model);
  }

  #current(): Counts {
    const ctx = this.#places.context();
    return ctx === undefined ? this.#factors.of(this.#model) : this.#of(ctx);
  }

  #learnFromBranch(ctx: ExtensionContext): void {
    const found: { readonly counts: Counts; readonly tokens: number }[] = [];
    for (const { earlier, later, between } of reportsOf(ctx.sessionManager)) {
      if (found.length >= this.#config().window) break;
      if (earlier.model !== this.#model || earlier.output === undefined) continue;
      const counts = noCounts();
      let images = 0;
      for (const message of [earlier.message, ...between]) {
        const counted = this.#counter.message(message);
        addCounts(counts, counted.counts);
        images += counted.images;
      }
      if (images === 0) found.push({ counts, tokens: later.input - earlier.input });
    }
    for (const { counts, tokens } of found.reverse()) this.#factors.learn(this.#model, counts, tokens);
  }

  #sum(messages: readonly AgentMessage[], factors: Counts): number {
    return messages.reduce((sum, message) => sum + this.#one(message, factors), 0);
  }

  #one(message: AgentMessage, factors: Counts): number {
    const { counts, images } = this.#counter.message(message);
    return this.#tokens(counts, images, factors);
  }

  #tokens(counts: Counts, images: number, factors: Counts): number {
    return dot(counts, factors) + images * this.#config().imageTokens;
  }

  /** What a request has beside its messages: the prompt and the tools. */
  #around(ctx: ExtensionContext, factors: Counts): number {
    const anchor = this.#anchor;
    if (anchor !== undefined && anchor.model === this.#model) {
      return Math.max(0, anchor.reported - this.#tokens(anchor.withoutSystem, anchor.images, factors));
    }
    return dot(this.#counter.text(ctx.getSystemPrompt()), factors) + this.#toolsLength / 4;
  }
}

/** The length of the tools' JSON in a payload of any of the services' dialects. */
function lengthOfTools(payload: unknown): number {
  if (!isObject(payload)) return 0;
  const tools = payload["tools"] ?? (isObject(payload["config"]) ? payload["config"]["tools"] : undefined);
  if (!Array.isArray(tools)) return 0;
  try {
    return JSON.stringify(tools).length;
  } catch {
    return 0;
  }
}
