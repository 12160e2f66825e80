import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { withoutTags } from "../../../extension/message-tag.ts";
import { COMPRESS_TOOL } from "../../../protocol/pruning/config.ts";
import { BLOCK_NOTE } from "../block-text.ts";
import { protectionOf } from "../protection/protection.ts";
import type { BlockTree, PruningServices } from "../pruning-services.ts";
import type { BlockRecord, BlocksRecord } from "../record.ts";
import { BLOCK_HEADER } from "../record.ts";
import type { CompressCall } from "./call.ts";
import { type Candidate, candidatesIn } from "./candidates.ts";
import { type KeepRules, keptOf, mostKept } from "./kept.ts";
import { emptyField, mostFindings, notStorable } from "./messages.ts";
import { protectedTurns, type Resolution, type ResolvedRange, type ResolveRules, resolve } from "./resolve.ts";
import { type View, viewOf } from "./view.ts";

/** The blocks that a call would store, or the reasons for a refusal. */
export type Compressed =
  | {
      readonly kind: "made";
      readonly record: BlocksRecord;
      /** The range of each block, in the same order. */
      readonly ranges: readonly ResolvedRange[];
      /** Ids of messages and blocks that leave the context. */
      readonly hidden: readonly string[];
    }
  | Extract<Resolution, { kind: "refused" }>;

/** The requester, and how wrong placeholders are treated. */
export interface Asker {
  /** The model's call. Absent: a request of the user, which has no minimum range size. */
  readonly callId?: string;
  readonly placeholders: ResolveRules["placeholders"];
}

/** Computes the result of a compression without storing it. */
export interface Compressor {
  /** Returns all blocks of a call, or all of its problems. */
  compress(call: CompressCall, asker: Asker, ctx: ExtensionContext): Compressed;
  /** Returns up to five ranges that can be compressed now. */
  candidates(ctx: ExtensionContext): readonly Candidate[];
}

type Host = Pick<PruningServices, "pruning" | "ids" | "blocks" | "usage" | "estimator" | "isUnanswered">;

export function createCompressor(host: Host): Compressor {
  return {
    compress: (call, asker, ctx) => compressed(host, call, asker, ctx),
    candidates: (ctx) => {
      const view = viewIn(host, ctx, host.blocks.on(ctx));
      const { compress, protectRecentTurns } = host.pruning();
      const turns = protectedTurns(view, protectRecentTurns);
      return candidatesIn(view, { minTokens: compress.minRangeTokens, turns });
    },
  };
}

function compressed(host: Host, call: CompressCall, asker: Asker, ctx: ExtensionContext): Compressed {
  // Requests of a user build on earlier pending ones; the model knows only what its request showed.
  const tree = asker.callId === undefined ? host.blocks.ahead(ctx) : host.blocks.on(ctx);
  const view = viewIn(host, ctx, tree, asker.callId);
  const cleaned = untagged(call, host, ctx);
  const refused = (problems: readonly string[]): Compressed => {
    const { compress, protectRecentTurns } = host.pruning();
    const turns = protectedTurns(view, protectRecentTurns);
    const candidates = candidatesIn(view, { minTokens: compress.minRangeTokens, turns });
    return { kind: "refused", problems, candidates, hasPlaceholders: false };
  };
  const empty = emptyIn(cleaned);
  if (empty.length > 0) return refused(empty);
  const resolution = resolve(cleaned, view, rulesOf(host, asker, ctx));
  if (resolution.kind === "refused") return resolution;
  const { topic, ranges } = resolution;
  const blocks = ranges.map((range, at) => recordOf(range, host.blocks.nextId(ctx, at)));
  const record: BlocksRecord = { v: 1, topic, blocks };
  // Never report a block as stored that the branch would reject.
  if (!host.blocks.takes(record, ctx)) return refused([notStorable]);
  const places = ranges.flatMap(({ span }) => view.places.slice(span.from, span.to + 1));
  return { kind: "made", record, ranges, hidden: places.flatMap(({ id }) => id ?? []) };
}

/** Removes tags that a summary repeats, because they would identify other messages. */
function untagged({ topic, ranges }: CompressCall, { ids, blocks }: Host, ctx: ExtensionContext): CompressCall {
  const tree = blocks.on(ctx);
  const isIssued = (id: string): boolean => ids.entryOf(id, ctx) !== undefined || tree.find(id) !== undefined;
  const clean = (text: string): string => withoutTags(text, isIssued);
  return { topic: clean(topic), ranges: ranges.map((range) => ({ ...range, summary: clean(range.summary) })) };
}

/** Problems of texts that contained only tags. */
function emptyIn({ topic, ranges }: CompressCall): readonly string[] {
  const empty = ranges.flatMap(({ summary }, at) => (summary.trim() === "" ? [`summary of ranges[${at}]`] : []));
  return [...(topic.trim() === "" ? ["topic"] : []), ...empty].slice(0, mostFindings).map(emptyField);
}

function viewIn(host: Host, ctx: ExtensionContext, tree: BlockTree, callId?: string): View {
  const { ids, usage, estimator, isUnanswered } = host;
  return viewOf({
    entries: ctx.sessionManager.buildSessionProjection().entries,
    idOf: (entryId) => ids.idOf(entryId, ctx),
    entryOf: (id) => ids.entryOf(id, ctx),
    newestId: ids.newest(ctx),
    tree,
    tokensOf: (message) => estimator.message(message),
    isPending: isUnanswered,
    usage: usage(ctx),
    ...(callId === undefined ? {} : { callId }),
  });
}

function rulesOf({ pruning, estimator }: Host, { callId, placeholders }: Asker, ctx: ExtensionContext): ResolveRules {
  const { compress, protectRecentTurns, protectedFilePatterns } = pruning();
  const protection = protectionOf(compress.protectedTools, protectedFilePatterns);
  const keep: KeepRules = {
    users: compress.protectUserMessages,
    isProtected: (tool, args) =>
      tool !== COMPRESS_TOOL && (protection.isTool(tool) || protection.isFile(args, ctx.cwd)),
  };
  return {
    placeholders,
    minRangeTokens: callId === undefined ? 0 : compress.minRangeTokens,
    minSavings: compress.minSavings,
    protectRecentTurns,
    mostKept,
    keptOf: (places) => keptOf(places, keep),
    tokensOf: (topic, body, kept) => {
      const words = body.map((segment) => ("text" in segment ? segment.text : ""));
      const texts = kept.flatMap(({ title, text }) => [title, text]);
      return estimator.text([BLOCK_HEADER, BLOCK_NOTE, topic, words.join(""), ...texts].join("\n"));
    },
  };
}

function recordOf(range: ResolvedRange, id: string): BlockRecord {
  const { entryIds, children, body, kept, tokensBefore, tokensAfter } = range;
  const [firstEntryId = ""] = entryIds;
  return {
    id,
    firstEntryId,
    lastEntryId: entryIds.at(-1) ?? firstEntryId,
    entryIds,
    children,
    body,
    kept,
    tokensBefore,
    tokensAfter,
  };
}
