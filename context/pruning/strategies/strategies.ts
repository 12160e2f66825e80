import type { ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import type { Boundary, BoundaryWish } from "../../../extension/boundary.ts";
import { AskRefused } from "../../../extension/engine-port.ts";
import type { PruningChange } from "../../../protocol/pruning/report.ts";
import type { PartContext } from "../../parts/optimisation/part-context.ts";
import { RECALL_MARK, recallIdOf, recordData } from "../../parts/recall/record.ts";
import { Announcements, isWritten } from "./announcements.ts";
import { type Batch, type Replacement, replacementsOf } from "./batch.ts";
import { EDITS_MARK, editDraft, editsData, PendingEdits } from "./pending-edits.ts";
import { prunedArguments } from "./pruned-arguments.ts";
import type { StrategyName } from "./removal.ts";
import { freshBlocks, type Order, type StrategiesContext, search } from "./search.ts";

/** What the user has taken out. */
export interface ManualPrune {
  /**
   * All that the strategies find, or the outputs of so many of the newest calls, whatever they are: at once, or with `wait` at
   * the next boundary of the run that is on. Throws {@link AskRefused}: `session_busy`, `pruning_disabled`.
   */
  sweep(calls: number | undefined, wait: boolean, ctx: ExtensionContext): PruningChange;
}

const part = "strategies";
/** Whose blocks are, in the report of the cache. */
export const blocksPart = "pruning";
/** Sweeps that wait for a boundary. More are the same as these. */
const maxWaiting = 16;
/** Of one answer. */
const maxAnswered = 1_000;

/**
 * Takes out at boundaries what is not needed any more: durably, in batches that are worth the provider's cache, each entry
 * under a number by which it is recalled. Where the cache is cold as a run begins, and where the user asks for it between two
 * runs, an entry says what goes, and requests go by that until pi takes the edits: while pruning is off neither is done.
 */
export function addStrategies(host: StrategiesContext): ManualPrune {
  const pending = new PendingEdits(host);
  const told = new Announcements(host);
  const waiting: (number | undefined)[] = [];
  const offered: { readonly calls: number | undefined; readonly replacements: readonly Replacement[] }[] = [];
  const hindrance = (ctx: ExtensionContext): string | undefined => host.off(ctx) ?? host.recall.missing();
  const isOn = (ctx: ExtensionContext): boolean =>
    hindrance(ctx) === undefined && (!host.isManual(ctx) || host.pruning().manualMode.automaticStrategies);

  const draftsAt = (order: Order, { state, ctx, edited }: Boundary): SessionBoundaryDraft[] => {
    const { contextEntries: context } = state.context;
    const scene = { context, edited: edited ?? new Set(), open: new Set(pending.on(ctx).keys()) };
    const batch = search(host, order, scene, ctx);
    const replacements = batch === undefined ? [] : replacementsOf(host, batch, ctx);
    if (batch === undefined || replacements.length === 0) return [];
    told.proposed(replacements);
    if (order.isForced) offered.push({ calls: order.calls, replacements });
    changed(host, replacements);
    return [...recordDrafts(replacements, batch), ...replacements.map(editDraft)];
  };
  /** What the user wants now. pi takes all that is proposed at a boundary or nothing, so that a sweep may wait for another. */
  const ordered = ({ sessionManager }: ExtensionContext): Order[] => {
    const again = offered
      .splice(0)
      .filter((one) => !one.replacements.some((made) => isWritten(made, host, sessionManager)));
    return [...again.map(({ calls }) => calls), ...waiting.splice(0)].map(wished);
  };
  /** Between two runs, or before the first request of one: what goes is written at once. */
  const writeNow = (order: Order, ctx: ExtensionContext): readonly Replacement[] => {
    const context = ctx.sessionManager.buildSessionProjection().entries;
    const batch = search(host, order, { context, edited: new Set(), open: new Set(pending.on(ctx).keys()) }, ctx);
    const replacements = batch === undefined ? [] : replacementsOf(host, batch, ctx);
    if (batch === undefined || replacements.length === 0) return [];
    for (const { customType, data } of recordDrafts(replacements, batch)) host.pi.appendEntry(customType, data);
    host.pi.appendEntry(EDITS_MARK, editsData(replacements));
    changed(host, replacements);
    told.now(replacements);
    return replacements;
  };

  host.recall.need(() => host.pruning().enabled);
  host.recall.addSource((id, ctx) => prunedArguments(host.recall.registry, id, ctx, pending.on(ctx)));
  host.boundary.contribute(
    part,
    (boundary): BoundaryWish | undefined => {
      const { ctx, state } = boundary;
      const fresh = host.off(ctx) === undefined ? freshBlocks(host, state.context.contextEntries, ctx) : [];
      for (const { entryIds } of fresh) host.cacheRule.changed(blocksPart, entryIds);
      const isOff = hindrance(ctx) !== undefined;
      const drafts: SessionBoundaryDraft[] = isOff ? [] : pending.drafts(ctx);
      const orders = isOff ? [] : ordered(ctx);
      if (isOn(ctx)) orders.push(found((strategy) => strategy !== "sizeDecay"));
      for (const order of orders) {
        const edited = new Set([...(boundary.edited ?? []), ...drafts.flatMap(targetOf)]);
        drafts.push(...draftsAt(order, { ...boundary, edited }));
      }
      return drafts.length === 0 ? undefined : { drafts };
    },
    { edits: "deduplication" },
  );
  host.boundary.contribute(
    "sizeDecay",
    (boundary): BoundaryWish | undefined => {
      if (!isOn(boundary.ctx) || !host.pruning().strategies.sizeDecay.enabled) return undefined;
      const drafts = draftsAt(
        found((strategy) => strategy === "sizeDecay"),
        boundary,
      );
      return drafts.length === 0 ? undefined : { drafts };
    },
    { edits: "decay" },
  );
  host.on(part, "agent_start", (_event, ctx) => {
    if (isOn(ctx) && host.cacheRule.isCold(ctx)) writeNow(found(), ctx);
  });
  host.on(part, "agent_settled", (_event, ctx) => {
    told.seen(ctx);
    const orders = ordered(ctx);
    // The run has had no boundary since.
    if (hindrance(ctx) === undefined) for (const order of orders) writeNow(order, ctx);
  });
  host.entries.need((_messages, ctx) => hindrance(ctx) === undefined && pending.on(ctx).size > 0);
  host.pipeline.use(
    "context_with_system",
    "bash",
    (messages, ctx) => {
      told.seen(ctx);
      return hindrance(ctx) === undefined ? pending.applied(messages, ctx) : undefined;
    },
    part,
  );

  return {
    sweep: (calls, wait, ctx) => {
      const why = hindrance(ctx);
      if (why !== undefined) throw new AskRefused("pruning_disabled", why);
      if (ctx.isIdle()) return changeOf(writeNow(wished(calls), ctx));
      if (!wait) throw new AskRefused("session_busy", "A run is on. With `wait` it is done at its next boundary.");
      if (waiting.length < maxWaiting && !waiting.includes(calls)) waiting.push(calls);
      return { state: "waiting", blocks: [], pruned: [], tokens: 0, notes: [] };
    },
  };
}

function wished(calls: number | undefined): Order {
  return { calls, isForced: true, isWanted: () => true };
}

function found(isWanted: (strategy: StrategyName) => boolean = () => true): Order {
  return { isForced: false, isWanted };
}

function targetOf(draft: SessionBoundaryDraft): string[] {
  return draft.type === "context_edit" ? [draft.targetId] : [];
}

/** One entry for each strategy: what the batch costs is written once, with the first. */
function recordDrafts(replacements: readonly Replacement[], { cost }: Batch) {
  const byStrategy = Map.groupBy(replacements, ({ record }) => record.part);
  return [...byStrategy].map(([strategy, ofOne], at) => {
    const records = ofOne.map(({ record }) => record);
    const data = recordData(strategy, records, at === 0 ? cost : { tokens: 0, usd: 0 });
    return { type: "custom" as const, customType: RECALL_MARK, data };
  });
}

function changed({ cacheRule }: Pick<PartContext, "cacheRule">, replacements: readonly Replacement[]): void {
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
