import type {
  ExtensionContext,
  SessionBeforeCompactEvent,
  SessionBeforeCompactResult,
} from "@earendil-works/pi-coding-agent";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { CompactionAdvice } from "../../parts/compaction/advice.ts";
import { failed } from "../../parts/compaction/compaction.ts";
import type { SeenEntry } from "../../parts/compaction/cut.ts";
import { turnsSinceFailure } from "../../parts/compaction/history.ts";
import { doesNotFit, type Summary, summarise } from "../../parts/compaction/summary.ts";
import { blockBudget, shownWithin } from "../block-budget.ts";
import { shownText } from "../block-text.ts";
import type { Block, BlockTree, PruningServices } from "../pruning-services.ts";
import { bareSummary, bareTokens } from "./bare-summary.ts";
import { coveredPrefix, cutAround, isSeen, shownEntries } from "./covered.ts";

const part = "pruning_compaction";
/** If blocks cover part of a span and it exceeds this share of the window, pi's own summary is not used. */
const rawShare = 0.8;
/** Tokens of a summary, and its share of the window. */
const mostSummary = 8_192;
const summaryShare = 0.25;
/** The greatest size of the context after an overflow, as a share of its previous size. */
const overflowShare = 0.75;

/** `details` of a compaction by pruning, under the key `pi-rpcd`. */
export interface BlockCompactionDetails {
  readonly v: 1;
  readonly from: "blocks" | "rendered";
  readonly blocks: readonly string[];
}

/** A compaction whose summary already exists. */
interface Ready {
  readonly summary: string;
  readonly firstKeptEntryId: string;
  readonly details: Readonly<Record<string, unknown>>;
  /** Tokens of the next request without and with the compaction. */
  readonly tokens: number;
  readonly tokensAfter: number;
}

/** Makes pi's own compaction use rendered sizes: pi counts covered messages instead of their smaller blocks. */
export function addNativeCompaction(
  host: Pick<PruningServices, "advice" | "on" | "debug" | "usage">,
  native: NativeCompaction,
): void {
  host.advice.take(native);
  host.on(part, "session_before_compact", async (event, ctx) => {
    const result = await native.beforePis(event, ctx);
    host.debug(part, { compaction: event.reason, ...decisionOf(result), tokens: host.usage(ctx)?.tokens ?? null });
    return result;
  });
}

/** Records failed summaries, which delay the next attempt. */
export class SummaryFailures {
  readonly #host: Pick<PruningServices, "compaction" | "pi" | "fault">;

  constructor(host: Pick<PruningServices, "compaction" | "pi" | "fault">) {
    this.#host = host;
  }

  /** Whether a summary has failed so recently that another attempt must wait. */
  isRecent({ sessionManager }: ExtensionContext): boolean {
    const turns = turnsSinceFailure(sessionManager);
    return turns !== undefined && turns < this.#host.compaction().minTurnsBetween;
  }

  /** Records the failure and its cost. */
  add(made: Extract<Summary, { failed: string }>, { model }: ExtensionContext): void {
    try {
      for (const draft of failed(made, `${model?.provider}/${model?.id}`)) {
        if (draft.type === "custom") this.#host.pi.appendEntry(draft.customType, draft.data);
      }
    } catch (thrown) {
      // Continue with the compaction anyway.
      this.#host.fault("session_before_compact", thrown, part);
    }
  }
}

type NativeNeeds = Pick<
  PruningServices,
  "off" | "usage" | "blocks" | "pruning" | "estimator" | "isUnanswered" | "recall"
>;

export class NativeCompaction implements CompactionAdvice {
  readonly #host: NativeNeeds;
  readonly #failures: SummaryFailures;

  constructor(host: NativeNeeds, failures: SummaryFailures) {
    this.#host = host;
    this.#failures = failures;
  }

  tokens(ctx: ExtensionContext): number | undefined {
    return this.#host.off(ctx) === undefined ? this.#nextTokens(ctx) : undefined;
  }

  shown(context: readonly SeenEntry[], ctx: ExtensionContext): readonly SeenEntry[] {
    if (this.#host.off(ctx) !== undefined) return context;
    const tree = this.#host.blocks.on(ctx);
    return tree.active.length === 0 ? context : shownEntries(context, tree, this.#texts(tree, ctx));
  }

  /** A compaction made of the blocks at the beginning of the context. */
  #ready(context: readonly SeenEntry[], ctx: ExtensionContext): Ready | undefined {
    const { fromBlocks, minPrefixShare } = this.#host.pruning().nativeCompaction;
    if (!fromBlocks) return undefined;
    const { blocks, estimator, isUnanswered } = this.#host;
    const tree = blocks.on(ctx);
    const prefix = tree.active.length === 0 ? undefined : coveredPrefix(context, tree, isUnanswered);
    if (prefix === undefined) return undefined;
    const covered = this.#tokens(context.slice(0, prefix.keptAt)) - this.#tokens(prefix.before);
    const raw = this.#tokens(context);
    if (covered < minPrefixShare * raw) return undefined;
    const texts = prefix.blocks.map(this.#texts(tree, ctx));
    const summary = [...earlierSummaries(prefix.before), ...texts].join("\n\n");
    const tokens = this.#host.usage(ctx)?.tokens ?? this.#shownTokens(context, ctx);
    const before = this.#tokens(this.shown(context.slice(0, prefix.keptAt), ctx));
    const details: BlockCompactionDetails = { v: 1, from: "blocks", blocks: prefix.blocks.map(({ id }) => id) };
    return {
      summary,
      firstKeptEntryId: prefix.firstKeptEntryId,
      details: { "pi-rpcd": details },
      tokens,
      tokensAfter: Math.max(0, Math.round(tokens - before + estimator.text(summary))),
    };
  }

  beforePis(
    event: SessionBeforeCompactEvent,
    ctx: ExtensionContext,
  ): SessionBeforeCompactResult | undefined | Promise<SessionBeforeCompactResult | undefined> {
    if (this.#host.off(ctx) !== undefined) return undefined;
    const most = threshold(event, ctx);
    if (event.reason === "threshold" && this.#isNeedless(most, ctx)) {
      return { cancel: true };
    }
    const context = ctx.sessionManager.buildSessionProjection().entries;
    const hasWish = event.customInstructions !== undefined && event.customInstructions.trim() !== "";
    const ready = hasWish ? undefined : this.#ready(context, ctx);
    if (ready !== undefined && isEnough(ready, event, most)) {
      const { summary, firstKeptEntryId, details } = ready;
      const { tokensBefore } = event.preparation;
      return { compaction: { summary, firstKeptEntryId, tokensBefore, details } };
    }
    return this.#fromShown(context, event, ctx);
  }

  /** pi counts covered messages and recent edits by their characters, so it can compact too early. */
  #isNeedless(most: number | undefined, ctx: ExtensionContext): boolean {
    return this.#host.pruning().nativeCompaction.guard && most !== undefined && this.#nextTokens(ctx) <= most;
  }

  /** After a compaction no usage is reported yet, and blocks may cover most of the kept context. */
  #nextTokens(ctx: ExtensionContext): number {
    return this.#host.usage(ctx)?.tokens ?? this.#shownTokens(ctx.sessionManager.buildSessionProjection().entries, ctx);
  }

  /** Includes the prompt and the tools. */
  #shownTokens(context: readonly SeenEntry[], ctx: ExtensionContext): number {
    return this.#host.estimator.request(messagesIn(this.shown(context, ctx)), ctx);
  }

  /** Summarizes the rendered messages if the covered ones do not fit into the window. */
  #fromShown(
    context: readonly SeenEntry[],
    event: SessionBeforeCompactEvent,
    ctx: ExtensionContext,
  ): SessionBeforeCompactResult | Promise<SessionBeforeCompactResult | undefined> | undefined {
    const { blocks } = this.#host;
    const { model } = ctx;
    if (model === undefined) return undefined;
    const tree = blocks.on(ctx);
    const at = context.findIndex(({ sourceEntry }) => sourceEntry.id === event.preparation.firstKeptEntryId);
    const raw = context.slice(0, Math.max(0, at));
    if (!raw.some(({ sourceEntry }) => tree.over(sourceEntry.id) !== undefined)) return undefined;
    if (this.#tokens(raw) <= rawShare * model.contextWindow) return undefined;
    // pi asks before each request, and a failed summary is likely to fail again.
    if (event.reason === "threshold" && this.#failures.isRecent(ctx)) return { cancel: true };
    const cut = cutAround(context, at, tree);
    const firstKept = cut === undefined ? undefined : context[cut];
    if (cut === undefined || firstKept === undefined) return undefined;
    return this.#summary(context.slice(0, cut), firstKept.sourceEntry.id, tree, event, ctx);
  }

  async #summary(
    span: readonly SeenEntry[],
    firstKeptEntryId: string,
    tree: BlockTree,
    event: SessionBeforeCompactEvent,
    ctx: ExtensionContext,
  ): Promise<SessionBeforeCompactResult | undefined> {
    const { estimator } = this.#host;
    const { model } = ctx;
    if (model === undefined) return undefined;
    const shown = messagesIn(this.shown(span, ctx));
    const made = await summarise(
      {
        model,
        messages: shown,
        maxTokens: Math.min(
          mostSummary,
          model.maxTokens || mostSummary,
          Math.floor(summaryShare * model.contextWindow),
        ),
        prompt: undefined,
        ...(event.customInstructions === undefined ? {} : { focus: event.customInstructions }),
        tokensOf: (text) => estimator.text(text),
        signal: event.signal,
      },
      ctx,
    );
    const hasFailed = "failed" in made;
    if (hasFailed) this.#failures.add(made, ctx);
    if (hasFailed && event.reason === "threshold") return { cancel: true };
    // pi's own summary includes all covered messages; services refuse it if they exceed the window.
    if (hasFailed && (event.signal.aborted || this.#tokens(span) <= model.contextWindow)) return undefined;
    // After a transient failure, cancel: the user can retry instead of losing the history.
    if (hasFailed && event.reason === "manual" && made.failed !== doesNotFit) {
      ctx.ui.notify(`Not compacted: no summary could be made. ${made.failed.slice(0, 500)}`, "error");
      return { cancel: true };
    }
    const summary = hasFailed ? this.#bareSummary(span, tree, ctx, model.contextWindow) : made.text;
    const covered = new Set(span.flatMap(({ sourceEntry }) => tree.over(sourceEntry.id)?.id ?? []));
    const details: BlockCompactionDetails = { v: 1, from: "rendered", blocks: [...covered] };
    return {
      compaction: {
        summary,
        firstKeptEntryId,
        tokensBefore: event.preparation.tokensBefore,
        // The cost of a failure is already recorded.
        ...(hasFailed ? {} : { usage: made.usage }),
        details: { "pi-rpcd": details },
      },
    };
  }

  #bareSummary(span: readonly SeenEntry[], tree: BlockTree, ctx: ExtensionContext, window: number): string {
    const over = (seen: SeenEntry) => (isSeen(seen) ? tree.over(seen.sourceEntry.id) : undefined);
    const most = bareTokens(window);
    const shown = shownWithin(tree, Math.min(blockBudget(this.#host, ctx) ?? most, most));
    const blocks = new Set(span.flatMap((seen) => over(seen) ?? []));
    return bareSummary({
      blocks: [...blocks].map((block) => ({ id: block.id, text: shownText(block, tree, shown) })),
      said: messagesIn(span.filter((seen) => over(seen) === undefined)),
      window,
    });
  }

  /** The text of each block as the model sees it. */
  #texts(tree: BlockTree, ctx: ExtensionContext): (block: Block) => string {
    const shown = shownWithin(tree, blockBudget(this.#host, ctx));
    return (block) => shownText(block, tree, shown);
  }

  #tokens(context: readonly SeenEntry[]): number {
    const { estimator } = this.#host;
    let sum = 0;
    for (const seen of context) {
      if (!isSeen(seen)) continue;
      for (const message of seen.messages) if (message.role !== "system") sum += estimator.message(message);
    }
    return sum;
  }
}

function messagesIn(context: readonly SeenEntry[]): readonly AgentMessage[] {
  return context.flatMap(({ messages }) => messages.filter(({ role }) => role !== "system"));
}

function decisionOf(result: SessionBeforeCompactResult | undefined): { readonly decided: string } {
  if (result === undefined) return { decided: "pi's own" };
  if (result.cancel === true) return { decided: "called off" };
  const details = result.compaction?.details as { readonly "pi-rpcd"?: BlockCompactionDetails } | undefined;
  return { decided: `made from ${details?.["pi-rpcd"]?.from ?? "another"}` };
}

/** Whether the compaction frees enough, since blocks do not shrink when they become a summary. */
function isEnough(
  { tokens, tokensAfter }: Ready,
  { reason }: SessionBeforeCompactEvent,
  most: number | undefined,
): boolean {
  if (reason === "manual") return true;
  if (most === undefined || tokensAfter > most) return false;
  return reason === "threshold" || tokensAfter <= overflowShare * tokens;
}

function earlierSummaries(before: readonly SeenEntry[]): string[] {
  return before.flatMap(({ messages }) =>
    messages.flatMap((message) => (message.role === "compactionSummary" ? [message.summary] : [])),
  );
}

/** Tokens above which pi compacts. `undefined`: the window is not known. */
function threshold({ preparation }: SessionBeforeCompactEvent, { model }: ExtensionContext): number | undefined {
  const window = model?.contextWindow ?? 0;
  const reserve: unknown = preparation.settings.reserveTokens;
  if (!(window > 0) || typeof reserve !== "number" || !Number.isFinite(reserve)) return undefined;
  return Math.max(0, window - Math.max(0, reserve));
}
