import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { PartStatus, Reporter } from "../optimisation/part-states.ts";
import { reportOf, reportsOf, tailOf } from "./branch.ts";
import { addCounts, Counter, type Counts, noCounts } from "./counts.ts";
import { ExactCounter } from "./exact-counter.ts";
import { dot, Factors, namedFactors } from "./factors.ts";
import { unpaired, withKnown } from "./same-message.ts";

/** Counts tokens for every decision of every part. */
export interface TokenEstimator {
  /** Uses the factors of the session's model. */
  text(text: string): number;
  /** Counts a message as pi sends it. Counts are cached by object and content. */
  message(message: AgentMessage): number;
  /**
   * Tokens of a request with these messages: the last report plus the difference since then. If the messages do not
   * include system messages, the prompt and the tools of the last request are added.
   */
  request(messages: readonly AgentMessage[], ctx: ExtensionContext): number;
  /** Tokens of the next request by the branch: the last report, plus later messages and edits. */
  context(ctx: ExtensionContext): number;
  /** Registers a threshold near which the estimate must be accurate. `undefined`: none now. */
  near(threshold: (ctx: ExtensionContext) => number | undefined): void;
  /** Waits for the tokenizer if one is configured and the context is near a threshold. */
  refined(ctx: ExtensionContext): Promise<void> | undefined;
}

/** The countable content of a request. */
interface Sent {
  readonly model: string;
  readonly messages: readonly AgentMessage[];
  /** The length of their JSON: with other tools two requests cannot be compared. */
  readonly toolsLength: number;
  /** The estimate before the request. */
  readonly expected: number | undefined;
}

type Anchor = Sent & { readonly reported: number };

/** Remembered prediction errors. */
const maxErrors = 200;

export interface EstimatorNeeds {
  readonly config: () => OptimisationConfig["estimator"];
  readonly status: PartStatus;
  /** The module that counts in a thread. */
  readonly tokenizer?: URL;
}

/** The tokenizer is used within this distance below a threshold, as a share of it. */
const nearShare = 0.1;
/** Text per tokenizer call. UTF-16 units. */
const mostExact = 2 * 1_024 * 1_024;

/** Memoizes the estimate of each message. */
export function tokensOnce(estimator: Pick<TokenEstimator, "message">): (message: AgentMessage) => number {
  const counts = new Map<AgentMessage, number>();
  return (message: AgentMessage): number => {
    const known = counts.get(message);
    if (known !== undefined) return known;
    const tokens = estimator.message(message);
    counts.set(message, tokens);
    return tokens;
  };
}

/** Creates the estimator and feeds it with the session's requests and answers. */
export function createEstimator(
  { pipeline, onSession, on, context }: Pick<HostPort, "pipeline" | "onSession" | "on" | "context">,
  needs: EstimatorNeeds,
): TokenEstimator {
  const estimator = new Estimator(needs, context);
  pipeline.use("context_with_system", "offer", (messages, ctx) => estimator.sending(messages, ctx), "estimator");
  pipeline.use("before_provider_request", "audit", (payload) => estimator.payload(payload), "estimator");
  pipeline.use("message_end", "learn", (message) => estimator.learn(message), "estimator");
  onSession(() => estimator.sessionStarted(), "estimator");
  on("estimator", "session_shutdown", () => estimator.close());
  needs.status.inspect(() => estimator.report());
  return estimator;
}

class Estimator implements TokenEstimator {
  readonly #context: HostPort["context"];
  readonly #config: EstimatorNeeds["config"];
  readonly #exact: ExactCounter;
  readonly #counter: Counter;
  readonly #factors = new Factors(() => this.#config().window);
  readonly #errors: number[] = [];
  readonly #thresholds: ((ctx: ExtensionContext) => number | undefined)[] = [];
  #model = "";
  /** The model that has this name. */
  #named: ExtensionContext["model"];
  #sending: Sent | undefined;
  #anchor: Anchor | undefined;
  /** The list that was compared last. */
  #compared: Record<"messages" | "known" | "made", readonly AgentMessage[]> | undefined;
  #toolsLength = 0;
  /** Models for which the branch was read. */
  readonly #read = new Set<string>();

  constructor({ config, status, tokenizer }: EstimatorNeeds, context: HostPort["context"]) {
    this.#context = context;
    this.#config = config;
    this.#exact = new ExactCounter({
      ...(tokenizer === undefined ? {} : { entry: tokenizer }),
      failed: (why) => status.degraded(`The tokenizer does not count, so characters are: ${why}`),
    });
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
    const known = hasSystem ? anchor.messages : withoutSystem(anchor.messages);
    const { counts, images } = this.#difference(known, this.#withKnown(messages, known));
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

  refined(ctx: ExtensionContext): Promise<void> | undefined {
    if (this.#config().tokenizer !== "bpe" || !this.#isNear(this.context(ctx), ctx)) return undefined;
    const { reported, added } = tailOf(ctx.sessionManager);
    return this.#refine(reported === undefined ? ctx.sessionManager.buildSessionProjection().messages : added);
  }

  close(): void {
    this.#exact.close();
  }

  /** Cached, because several stages use the same list. */
  #withKnown(messages: readonly AgentMessage[], known: readonly AgentMessage[]): readonly AgentMessage[] {
    const last = this.#compared;
    if (last?.messages === messages && last.known === known) return last.made;
    const made = withKnown(messages, known);
    this.#compared = { messages, known, made };
    return made;
  }

  #isNear(tokens: number, ctx: ExtensionContext): boolean {
    return this.#thresholds.some((threshold) => {
      const at = threshold(ctx);
      return at !== undefined && tokens >= (1 - nearShare) * at;
    });
  }

  async #refine(messages: readonly AgentMessage[]): Promise<void> {
    const texts: { readonly hash: string; readonly text: string }[] = [];
    let size = 0;
    for (const one of this.#counter.uncounted(messages)) {
      size += one.text.length;
      if (size > mostExact) break;
      texts.push(one);
    }
    if (texts.length === 0) return;
    const counts = await this.#exact.count(texts.map(({ text }) => text));
    for (const [at, tokens] of counts?.entries() ?? []) {
      const hash = texts[at]?.hash;
      if (hash !== undefined && Number.isSafeInteger(tokens)) this.#counter.learn(hash, tokens);
    }
  }

  sessionStarted(): void {
    this.#sending = undefined;
    this.#anchor = undefined;
    this.#read.clear();
  }

  /** Call before a request with these messages. */
  sending(messages: readonly AgentMessage[], ctx: ExtensionContext): void {
    this.#of(ctx);
    const made = this.#withKnown(messages, this.#anchor?.messages ?? []);
    const expected = this.#anchor?.model === this.#model ? this.request(made, ctx) : undefined;
    this.#sending = { model: this.#model, messages: made, toolsLength: this.#toolsLength, expected };
  }

  /** Also called for keep-warm requests, which have the same tools. */
  payload(payload: unknown): void {
    this.#toolsLength = lengthOfTools(payload);
    if (this.#sending !== undefined) this.#sending = { ...this.#sending, toolsLength: this.#toolsLength };
  }

  learn(message: AgentMessage): void {
    if (message.role !== "assistant") return;
    const sent = this.#sending;
    this.#sending = undefined;
    this.#compared = undefined;
    const report = reportOf(message);
    if (sent === undefined || report === undefined || report.model !== sent.model) return;
    const before = this.#anchor;
    if (sent.expected !== undefined) {
      this.#errors.push(Math.abs(sent.expected - report.input) / report.input);
      if (this.#errors.length > maxErrors) this.#errors.shift();
    }
    this.#anchor = { ...sent, reported: report.input };
    if (before === undefined || before.model !== sent.model || before.toolsLength !== sent.toolsLength) return;
    const { counts, images } = this.#difference(before.messages, sent.messages);
    // The tokens of an image depend on its size, which is unknown here.
    if (images === 0) this.#factors.learn(sent.model, counts, report.input - before.reported);
  }

  report(): ReturnType<Reporter> {
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

  /** The factors of the session's model, learnt from the branch if this process has none yet. */
  #of(ctx: ExtensionContext): Counts {
    const { model } = ctx;
    // Asked for each message.
    if (model !== undefined && model !== this.#named) {
      this.#named = model;
      this.#model = `${model.provider}/${model.id}`;
    }
    if (!this.#read.has(this.#model)) {
      this.#read.add(this.#model);
      if (this.#factors.seen(this.#model) === 0) this.#learnFromBranch(ctx);
    }
    return this.#factors.of(this.#model);
  }

  #current(): Counts {
    const ctx = this.#context();
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

  /** Added minus removed messages. */
  #difference(
    before: readonly AgentMessage[],
    after: readonly AgentMessage[],
  ): { readonly counts: Counts; readonly images: number } {
    const counts = noCounts();
    let images = 0;
    const left = new Map<string, AgentMessage[]>();
    const { gone, come } = unpaired(before, after);
    for (const message of gone) {
      const { key } = this.#counter.message(message);
      const same = left.get(key);
      if (same === undefined) left.set(key, [message]);
      else same.push(message);
    }
    for (const message of come) {
      const counted = this.#counter.message(message);
      if (left.get(counted.key)?.pop() !== undefined) continue;
      addCounts(counts, counted.counts);
      images += counted.images;
    }
    for (const message of [...left.values()].flat()) {
      const counted = this.#counter.message(message);
      addCounts(counts, counted.counts, -1);
      images -= counted.images;
    }
    return { counts, images };
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

  /** Tokens of the prompt and the tools. */
  #around(ctx: ExtensionContext, factors: Counts): number {
    const anchor = this.#anchor;
    if (anchor !== undefined && anchor.model === this.#model) {
      return Math.max(0, anchor.reported - this.#sum(withoutSystem(anchor.messages), factors));
    }
    return dot(this.#counter.text(ctx.getSystemPrompt()), factors) + this.#toolsLength / 4;
  }
}

function withoutSystem(messages: readonly AgentMessage[]): readonly AgentMessage[] {
  return messages.filter(({ role }) => role !== "system");
}

/** The length of the tools' JSON in a payload of any of the services' dialects. */
function lengthOfTools(payload: unknown): number {
  if (!isRecord(payload)) return 0;
  const tools = payload["tools"] ?? (isRecord(payload["config"]) ? payload["config"]["tools"] : undefined);
  if (!Array.isArray(tools)) return 0;
  try {
    return JSON.stringify(tools).length;
  } catch {
    return 0;
  }
}
