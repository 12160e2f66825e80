import type {
  ExtensionAPI,
  ExtensionContext,
  SessionBeforeCompactEvent,
  SessionBeforeCompactResult,
  SessionBoundaryDraft,
} from "@earendil-works/pi-coding-agent";
import type { Boundary, BoundaryProposal } from "../../../extension/boundary.ts";
import type { HostPort } from "../../../extension/engine-port.ts";
import { type AgentMessage, messageOf } from "../../../extension/pi-types.ts";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { Threshold } from "../../../protocol/optimisation/threshold.ts";
import { COST_MARK_TYPE, markData } from "../../cost/marks.ts";
import { fileStart } from "../../small-file.ts";
import type { CacheRule } from "../cache/cache-rule.ts";
import type { TokenEstimator } from "../estimator/estimator.ts";
import type { PartStatus, Reporter } from "../optimisation/part-states.ts";
import type { CompactionAdvice } from "./advice.ts";
import { type Cut, cutOf } from "./cut.ts";
import { COMPACTION_ENTRY, type CompactionDetails, historyOf, turnsSince } from "./history.ts";
import { LastRequest, modelName } from "./last-request.ts";
import { type LastOne, type Summary, type SummaryUsage, summarise } from "./summary.ts";
import { sessionThreshold } from "./threshold.ts";

type Model = NonNullable<ExtensionContext["model"]>;

const part = "compaction";

/** Maximum and minimum tokens of a summary. */
const mostSummary = 8_192;
const leastSummary = 256;
/** Tokens that pi adds around a summary. */
const aroundSummary = 48;
/** Above this share of the window, pi's own compaction is never canceled. */
const fullShare = 0.95;
/** Bytes of a prompt; the rest of the file is ignored. */
const maxPromptBytes = 64 * 1_024;

export interface CompactionNeeds {
  readonly pi: Pick<ExtensionAPI, "getThinkingLevel">;
  readonly config: () => OptimisationConfig["compaction"];
  readonly estimator: Pick<TokenEstimator, "near" | "refined" | "context" | "message" | "text">;
  readonly advice: CompactionAdvice;
  readonly cacheRule: Pick<CacheRule, "isCold" | "changes">;
  readonly isUnanswered: HostPort["isUnanswered"];
  readonly status: PartStatus;
}

/** Compacts between two turns when the context exceeds a share of the model's window. */
export function addCompaction(
  { boundary: writer, pipeline, on, onSession }: Pick<HostPort, "boundary" | "pipeline" | "on" | "onSession">,
  needs: CompactionNeeds,
): void {
  const last = new LastRequest();
  const compaction = new Compaction(needs, last);
  const isOn = (ctx: ExtensionContext): boolean => compaction.threshold(ctx) !== undefined;
  pipeline.use(
    "context_with_system",
    "audit",
    (_messages, ctx) => (isOn(ctx) ? last.listed(ctx) : last.forget()),
    part,
  );
  pipeline.use("before_provider_request", "audit", (payload) => last.sent(payload), part);
  for (const event of ["agent_settled", "model_select", "session_tree", "session_compact"] as const) {
    on(part, event, () => last.forget());
  }
  onSession(() => last.forget(), part);
  needs.estimator.near((ctx) => compaction.threshold(ctx)?.tokens);
  writer.contribute(part, (boundary) => compaction.atBoundary(boundary));
  on(part, "session_before_compact", (event, ctx) => compaction.beforePis(event, ctx));
  onSession((ctx) => compaction.modelChosen(ctx), part);
  on(part, "model_select", (_event, ctx) => compaction.modelChosen(ctx));
  needs.status.inspect((ctx) => compaction.report(ctx));
}

/** A planned compaction. */
interface Plan {
  readonly threshold: Threshold;
  readonly cut: Cut;
  readonly tokensBefore: number;
  readonly maxSummary: number;
}

class Compaction {
  readonly #needs: CompactionNeeds;
  readonly #last: LastRequest;
  /** The model with which no compaction could free enough. */
  #tooSmall: string | undefined;

  constructor(needs: CompactionNeeds, last: LastRequest) {
    this.#needs = needs;
    this.#last = last;
  }

  /** `undefined`: the part is off, or pi's own settings apply. */
  threshold(ctx: ExtensionContext): Threshold | undefined {
    const config = this.#needs.config();
    if (!config.enabled || (config.route !== "draft" && config.route !== "auto")) return undefined;
    return sessionThreshold(config, ctx);
  }

  modelChosen(ctx: ExtensionContext): void {
    const name = modelName(ctx);
    if (this.#tooSmall === undefined || this.#tooSmall === name) return;
    this.#tooSmall = undefined;
    this.#needs.status.restored();
  }

  atBoundary({ hook, state, ctx }: Boundary): BoundaryProposal | undefined | Promise<BoundaryProposal | undefined> {
    const threshold = hook === "turn_end" && state.outcome === "completed" ? this.threshold(ctx) : undefined;
    if (threshold === undefined || ctx.signal?.aborted === true || this.#tooSmall === modelName(ctx)) return undefined;
    if (state.entries.some(({ type }) => type === "compaction") || !this.#hasWaited(ctx)) return undefined;
    const refined = this.#needs.estimator.refined(ctx);
    const go = () => {
      const plan = this.#plan(threshold, { hook, state, ctx });
      return plan === undefined ? undefined : this.#compact(plan, { hook, state, ctx });
    };
    return refined === undefined ? go() : refined.then(go);
  }

  /**
   * pi compacts at a fixed distance from the end of the window, which is below the threshold in a small window. Cancels a
   * compaction that comes before the threshold, or too soon after another.
   */
  beforePis(event: SessionBeforeCompactEvent, ctx: ExtensionContext): SessionBeforeCompactResult | undefined {
    const threshold = this.threshold(ctx);
    if (threshold === undefined || event.reason !== "threshold" || this.#tooSmall === modelName(ctx)) return undefined;
    const tokens =
      this.#shownTokens(ctx) ?? Math.max(event.preparation.tokensBefore, this.#needs.estimator.context(ctx));
    if (tokens > fullShare * threshold.window) return undefined;
    return tokens <= threshold.tokens || !this.#hasWaited(ctx) ? { cancel: true } : undefined;
  }

  report(ctx: ExtensionContext): ReturnType<Reporter> {
    const { savedTokens, spentTokens, spentUsd, last, ...counts } = historyOf(ctx.sessionManager);
    const threshold = this.threshold(ctx);
    const { route } = this.#needs.config();
    const readPrice = ctx.model?.cost.cacheRead || ctx.model?.cost.input || 0;
    return {
      savedTokens,
      savedUsd: (savedTokens * readPrice) / 1_000_000,
      spentTokens,
      spentUsd,
      figures: {
        route: route === "auto" ? "draft" : route,
        window: threshold?.window ?? null,
        thresholdTokens: threshold?.tokens ?? null,
        keepRecentTokens: threshold?.keepRecentTokens ?? null,
        ...counts,
        lastFiredAtShare: last === undefined ? null : last.tokensBefore / last.window,
        lastTokensBefore: last?.tokensBefore ?? null,
        lastTokensAfter: last?.tokensAfter ?? null,
      },
    };
  }

  #shownTokens(ctx: ExtensionContext): number | undefined {
    return this.#needs.advice.tokens(ctx);
  }

  /** Whether enough turns have passed since the last compaction or attempt. */
  #hasWaited(ctx: ExtensionContext): boolean {
    const turns = turnsSince(ctx.sessionManager);
    return turns === undefined || turns >= this.#needs.config().minTurnsBetween;
  }

  #plan(threshold: Threshold, { state, ctx }: Boundary): Plan | undefined {
    const { estimator, isUnanswered } = this.#needs;
    const tokensBefore = this.#shownTokens(ctx) ?? estimator.context(ctx);
    const { minFreeShare } = this.#needs.config();
    if (tokensBefore <= threshold.tokens) return undefined;
    const contextEntries = this.#needs.advice.shown(state.context.contextEntries, ctx);
    const all = contextEntries.flatMap(({ messages }) => messages.filter(({ role }) => role !== "system"));
    const counted = all.reduce((sum, message) => sum + estimator.message(message), 0);
    // Reported tokens are more accurate than counted ones.
    const scale = Math.min(1, tokensBefore / (counted + estimator.text(ctx.getSystemPrompt())));
    const tokensOf = (message: AgentMessage) => scale * estimator.message(message);
    const cut = cutOf(contextEntries, { keepRecentTokens: threshold.keepRecentTokens, tokensOf, isUnanswered });
    const toFree = minFreeShare * tokensBefore;
    const room = Math.floor((cut?.summarisedTokens ?? 0) - toFree - aroundSummary);
    if (cut !== undefined && room >= leastSummary) {
      const maxSummary = Math.min(mostSummary, room, ctx.model?.maxTokens || mostSummary);
      return { threshold, cut, tokensBefore, maxSummary };
    }
    // A compaction cannot free the prompt, the tools and the kept messages.
    const fixed = Math.max(0, Math.round(tokensBefore - scale * counted));
    const least = fixed + threshold.keepRecentTokens + aroundSummary + leastSummary;
    if (least > (1 - minFreeShare) * threshold.tokens) this.#giveUp(ctx, threshold, fixed);
    return undefined;
  }

  #giveUp(ctx: ExtensionContext, { window, tokens, keepRecentTokens }: Threshold, fixed: number): void {
    this.#tooSmall = modelName(ctx);
    const share = Math.round(this.#needs.config().minFreeShare * 100);
    this.#needs.status.degraded(
      `The window of ${this.#tooSmall} is too small: with ${fixed} tokens of prompt and tools and ${keepRecentTokens} that are kept, a compaction at ${tokens} could not free ${share} %.`,
      { window, thresholdTokens: tokens, fixedTokens: fixed },
    );
  }

  async #compact({ threshold, cut, tokensBefore, maxSummary }: Plan, boundary: Boundary): Promise<BoundaryProposal> {
    const { estimator } = this.#needs;
    const { ctx } = boundary;
    const { model } = ctx;
    if (model === undefined) return { drafts: [] };
    const summary = await summarise(
      {
        model,
        messages: cut.summarised,
        maxTokens: maxSummary,
        prompt: this.#prompt(),
        tokensOf: (text) => estimator.text(text),
        last: this.#lastUpTo(cut.lastSummarisedEntryId, model, boundary),
      },
      ctx,
    );
    this.#last.forget();
    const name = `${model.provider}/${model.id}`;
    if ("failed" in summary) return { drafts: failed(summary, name) };
    const tokensAfter = Math.round(tokensBefore - cut.summarisedTokens + aroundSummary + estimator.text(summary.text));
    const { minFreeShare } = this.#needs.config();
    if (tokensBefore - tokensAfter < minFreeShare * tokensBefore) {
      return { drafts: failed({ failed: "The summary is too long.", usage: summary.usage }, name) };
    }
    const { window, tokens } = threshold;
    const own: CompactionDetails = { v: 1, tokensBefore, tokensAfter, threshold: tokens, window };
    return {
      drafts: [
        {
          type: "compaction",
          summary: summary.text,
          firstKeptEntryId: cut.firstKeptEntryId,
          usage: summary.usage,
          details: { "pi-rpcd": own },
        },
      ],
    };
  }

  #lastUpTo(entryId: string, { reasoning }: Pick<Model, "reasoning">, boundary: Boundary): LastOne | undefined {
    const { pi, cacheRule } = this.#needs;
    const last = this.#last.upTo(entryId, boundary);
    if (last === undefined) return undefined;
    return {
      ...last,
      ...(cacheRule.isCold(boundary.ctx) ? { cachedTokens: 0 } : {}),
      isThinking: reasoning && pi.getThinkingLevel() !== "off",
      isPassing: (message) => cacheRule.changes.isPassingMessage(message),
    };
  }

  /** The text of the configured file. `undefined`: none, or unreadable. */
  #prompt(): string | undefined {
    const { prompt } = this.#needs.config();
    if (prompt === null) return undefined;
    try {
      return promptIn(prompt);
    } catch (thrown) {
      this.#needs.status.degraded(
        `The prompt for summaries cannot be read, so the built-in one is used: ${messageOf(thrown)}`,
      );
      return undefined;
    }
  }
}

/** Reads a prompt file. Throws if it is empty, unreadable or not a regular file; never blocks on a pipe. */
export function promptIn(path: string): string {
  const text = fileStart(path, maxPromptBytes).toString("utf8").trim();
  if (text === "") throw new Error(`${path} is empty.`);
  return text;
}

/** Entries that record a failed attempt, which delays the next one, and its cost. */
export function failed(
  { failed: why, usage }: Extract<Summary, { failed: string }>,
  model: string,
): SessionBoundaryDraft[] {
  const tried = { v: 1, kind: "failed", why: why.slice(0, 500) };
  return [
    { type: "custom", customType: COMPACTION_ENTRY, data: tried },
    ...(usage === undefined || isNothing(usage)
      ? []
      : [
          {
            type: "custom",
            customType: COST_MARK_TYPE,
            data: markData({ kind: "failedSummary", usage, model }),
          } as const,
        ]),
  ];
}

function isNothing({ totalTokens, input, output, cacheRead, cacheWrite }: SummaryUsage): boolean {
  return [totalTokens, input, output, cacheRead, cacheWrite].every((count) => !count);
}
