import type { ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import type { Boundary, BoundaryProposal } from "../../../extension/boundary.ts";
import { AskRefused } from "../../../extension/engine-port.ts";
import type { PruningChange } from "../../../protocol/pruning/report.ts";
import { EDITS_MARK, editDraft, editsData } from "../../parts/recall/pending-edits.ts";
import { RECALL_MARK, recallIdOf, recordData } from "../../parts/recall/record.ts";
import type { PruningServices } from "../pruning-services.ts";
import { type Announcements, isWritten } from "./announcements.ts";
import { type Batch, type Replacement, replacementsOf } from "./batch.ts";
import { prunedArguments } from "./pruned-arguments.ts";
import type { StrategyName } from "./removal.ts";
import { freshBlocks, type Order, type Scene } from "./search.ts";

/** Pruning on request of the user. */
export interface ManualPrune {
  /**
   * Removes everything that the strategies find, or the outputs of this many newest calls: immediately, or with `wait` at
   * the next boundary of the active run. Throws {@link AskRefused}: `session_busy`, `pruning_disabled`.
   */
  sweep(calls: number | undefined, wait: boolean, ctx: ExtensionContext): PruningChange;
}

interface StrategyParts {
  readonly told: Announcements;
  /** Returns the batch of an order that is worth its cost. `undefined`: none now. */
  readonly find: (order: Order, scene: Scene, ctx: ExtensionContext) => Batch | undefined;
  /** Whether the user decides when to prune. */
  readonly isManual: (ctx: ExtensionContext) => boolean;
}

const part = "strategies";
/** The owner of blocks in the cache report. */
export const blocksPart = "pruning";
/** Pending sweeps. */
const maxWaiting = 16;
/** Removals reported in one answer. */
const maxAnswered = 1_000;

/**
 * Removes redundant content at boundaries: durably, in batches that are worth losing the provider's cache, each entry
 * with a recall number. If the cache is cold at the start of a run, or the user asks between runs, a custom entry records
 * the edits and requests apply it until pi accepts them. Nothing is removed or applied while pruning is off.
 */
export function addStrategies(
  { boundary, on, pipeline }: Pick<PruningServices, "boundary" | "on" | "pipeline">,
  host: Pick<PruningServices, "pi" | "off" | "pruning" | "recall" | "cacheRule" | "blocks" | "pending">,
  { told, find, isManual }: StrategyParts,
): ManualPrune {
  const { pending } = host;
  const waiting: (number | undefined)[] = [];
  const offered: { readonly calls: number | undefined; readonly replacements: readonly Replacement[] }[] = [];
  const hindrance = (ctx: ExtensionContext): string | undefined => host.off(ctx) ?? host.recall.missing();
  const isOn = (ctx: ExtensionContext): boolean =>
    hindrance(ctx) === undefined && (!isManual(ctx) || host.pruning().manualMode.automaticStrategies);

  const draftsAt = (order: Order, { state, ctx, edited }: Boundary): SessionBoundaryDraft[] => {
    const { contextEntries: context } = state.context;
    const scene = { context, edited: edited ?? new Set(), open: new Set(pending.on(ctx).keys()) };
    const batch = find(order, scene, ctx);
    const replacements = batch === undefined ? [] : replacementsOf(host, batch, ctx);
    if (batch === undefined || replacements.length === 0) return [];
    told.proposed(replacements);
    if (order.isForced) offered.push({ calls: order.calls, replacements });
    changed(host, replacements);
    return [...recordDrafts(replacements, batch), ...replacements.map(editDraft)];
  };
  /** Sweeps to run now. pi accepts all drafts of a boundary or none, so a refused sweep is offered again. */
  const ordered = ({ sessionManager }: ExtensionContext): Order[] => {
    const again = offered
      .splice(0)
      .filter((one) => !one.replacements.some((made) => isWritten(made, host, sessionManager)));
    return [...again.map(({ calls }) => calls), ...waiting.splice(0)].map(orderOfUser);
  };
  /** Writes removals immediately: between runs, or before the first request of a run. */
  const writeNow = (order: Order, ctx: ExtensionContext): readonly Replacement[] => {
    const context = ctx.sessionManager.buildSessionProjection().entries;
    const batch = find(order, { context, edited: new Set(), open: new Set(pending.on(ctx).keys()) }, ctx);
    const replacements = batch === undefined ? [] : replacementsOf(host, batch, ctx);
    if (batch === undefined || replacements.length === 0) return [];
    for (const { customType, data } of recordDrafts(replacements, batch)) host.pi.appendEntry(customType, data);
    host.pi.appendEntry(EDITS_MARK, editsData(part, replacements));
    changed(host, replacements);
    told.now(replacements);
    return replacements;
  };

  host.recall.need(() => host.pruning().enabled);
  host.recall.addSource((id, ctx) => prunedArguments(host.recall.registry, id, ctx, pending.contents(ctx)));
  boundary.contribute(
    part,
    (at): BoundaryProposal | undefined => {
      const { ctx, state } = at;
      const fresh = host.off(ctx) === undefined ? freshBlocks(host, state.context.contextEntries, ctx) : [];
      for (const { entryIds } of fresh) host.cacheRule.changed(blocksPart, entryIds);
      const isOff = hindrance(ctx) !== undefined;
      const drafts: SessionBoundaryDraft[] = [];
      const orders = isOff ? [] : ordered(ctx);
      if (isOn(ctx)) orders.push(orderByStrategies((strategy) => strategy !== "sizeDecay"));
      for (const order of orders) {
        const edited = new Set([...(at.edited ?? []), ...drafts.flatMap(targetOf)]);
        drafts.push(...draftsAt(order, { ...at, edited }));
      }
      return drafts.length === 0 ? undefined : { drafts };
    },
    { edits: "deduplication" },
  );
  boundary.contribute(
    "sizeDecay",
    (at): BoundaryProposal | undefined => {
      if (!isOn(at.ctx) || !host.pruning().strategies.sizeDecay.enabled) return undefined;
      const drafts = draftsAt(
        orderByStrategies((strategy) => strategy === "sizeDecay"),
        at,
      );
      return drafts.length === 0 ? undefined : { drafts };
    },
    { edits: "decay" },
  );
  on(part, "agent_start", (_event, ctx) => {
    if (isOn(ctx) && host.cacheRule.isCold(ctx)) writeNow(orderByStrategies(), ctx);
  });
  on(part, "agent_settled", (_event, ctx) => {
    told.seen(ctx);
    const orders = ordered(ctx);
    // The run had no later boundary.
    if (hindrance(ctx) === undefined) for (const order of orders) writeNow(order, ctx);
  });
  pending.rest(part, (ctx) => hindrance(ctx) !== undefined);
  pipeline.use("context_with_system", "bash", (_messages, ctx) => told.seen(ctx), part);

  return {
    sweep: (calls, wait, ctx) => {
      const why = hindrance(ctx);
      if (why !== undefined) throw new AskRefused("pruning_disabled", why);
      if (ctx.isIdle()) return changeOf(writeNow(orderOfUser(calls), ctx));
      if (!wait) throw new AskRefused("session_busy", "A run is on. With `wait` it is done at its next boundary.");
      if (waiting.length < maxWaiting && !waiting.includes(calls)) waiting.push(calls);
      return { state: "waiting", blocks: [], pruned: [], tokens: 0, notes: [] };
    },
  };
}

function orderOfUser(calls: number | undefined): Order {
  return { calls, isForced: true, isWanted: () => true };
}

function orderByStrategies(isWanted: (strategy: StrategyName) => boolean = () => true): Order {
  return { isForced: false, isWanted };
}

function targetOf(draft: SessionBoundaryDraft): string[] {
  return draft.type === "context_edit" ? [draft.targetId] : [];
}

/** One entry for each strategy; the first contains the cost of the batch. */
function recordDrafts(replacements: readonly Replacement[], { cost }: Batch) {
  const byStrategy = Map.groupBy(replacements, ({ record }) => record.part);
  return [...byStrategy].map(([strategy, ofOne], at) => {
    const records = ofOne.map(({ record }) => record);
    const data = at === 0 ? recordData(strategy, records, cost) : recordData(strategy, records);
    return { type: "custom" as const, customType: RECALL_MARK, data };
  });
}

function changed({ cacheRule }: Pick<PruningServices, "cacheRule">, replacements: readonly Replacement[]): void {
  for (const { record, targetId } of replacements) cacheRule.changed(record.part, [targetId]);
}

function changeOf(replacements: readonly Replacement[]): PruningChange {
  const pruned = replacements.map(({ record, targetId }) => ({
    recallId: recallIdOf(record.number),
    entryId: targetId,
    tool: record.tool.slice(0, 256),
    strategy: record.part,
    tokens: Math.round(record.tokens),
  }));
  const tokens = pruned.reduce((sum, one) => sum + one.tokens, 0);
  return { state: "done", blocks: [], pruned: pruned.slice(0, maxAnswered), tokens, notes: [] };
}
