import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { tokensOnce } from "../../parts/estimator/estimator.ts";
import { type ContextEntry, cachedUntil } from "../../parts/masking/candidates.ts";
import type { Block, PruningServices } from "../pruning-services.ts";
import { type Batch, batchOf } from "./batch.ts";
import { newestOutputs, type Planning, planned } from "./plan.ts";
import type { Removal, StrategyName } from "./removal.ts";

type SearchNeeds = Pick<
  PruningServices,
  "boundary" | "isUnanswered" | "estimator" | "pruning" | "usage" | "blocks" | "cacheRule"
>;

/** A request for a batch. */
export interface Order {
  /** Remove the outputs of this many newest calls. Absent: use the strategies. */
  readonly calls?: number | undefined;
  /** The user requested it, so the cost is ignored. */
  readonly isForced: boolean;
  readonly isWanted: (strategy: StrategyName) => boolean;
}

export interface Scene {
  readonly context: readonly ContextEntry[];
  /** Entries that other parts edit at this boundary. */
  readonly edited: ReadonlySet<string>;
  /** Entries with edits that pi does not have yet. */
  readonly open: ReadonlySet<string>;
}

/** Returns the batch of an order that is worth its cost. `undefined`: none now. */
export function search(host: SearchNeeds, order: Order, scene: Scene, ctx: ExtensionContext): Batch | undefined {
  const { context, edited, open } = scene;
  const isHidden = (entryId: string): boolean => host.boundary.isProtected(entryId, ctx);
  const isOut = (entryId: string): boolean =>
    edited.has(entryId) || open.has(entryId) || isHidden(entryId) || host.isUnanswered(entryId);
  const tokensOf = tokensOnce(host.estimator);
  const planning: Planning = { context, config: host.pruning(), cwd: ctx.cwd, tokensOf, isOut };
  const { calls, isForced, isWanted } = order;
  const all: readonly Removal[] = calls === undefined ? planned(planning) : newestOutputs(planning, calls);
  const removals = all.filter(({ strategy }) => isWanted(strategy));
  if (removals.length === 0) return undefined;
  const usage = isForced ? undefined : host.usage(ctx);
  const isAboveMax = usage !== undefined && usage.share >= usage.max;
  const fresh = freshBlocks(host, context, ctx).flatMap(({ entryIds }) => entryIds);
  const changesFrom = firstOf(new Set([...edited, ...fresh]), context);
  return batchOf(host, { removals, context, tokensOf, isHidden, changesFrom, isForced, isAboveMax }, ctx);
}

/** The blocks made after the last answer; the next request is the first that shows them. */
export function freshBlocks(
  { blocks }: Pick<PruningServices, "blocks">,
  context: readonly ContextEntry[],
  ctx: ExtensionContext,
): readonly Block[] {
  const { active } = blocks.on(ctx);
  if (active.length === 0) return [];
  const since = new Set(context.slice(cachedUntil(context) + 1).map(({ sourceEntry }) => sourceEntry.id));
  return active.filter(({ entryId }) => since.has(entryId));
}

/** The index of the first of these entries in the context, or its length. */
function firstOf(entryIds: ReadonlySet<string>, context: readonly ContextEntry[]): number {
  const first = context.findIndex(({ sourceEntry }) => entryIds.has(sourceEntry.id));
  return first === -1 ? context.length : first;
}
