import type { ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import type { PruningConfig } from "../../../../protocol/pruning/config.ts";
import type { Boundary, BoundaryWish } from "../../../boundary.ts";
import type { ContextEntry } from "../../masking/candidates.ts";
import type { Workbench } from "../../optimisation/workbench.ts";
import { RECALL_MARK, recallIdOf, recordData } from "../../recall/record.ts";
import type { Blocks, Usage } from "../bench.ts";
import { type Batch, batchOf, type Replacement, replacementsOf } from "./batch.ts";
import { EDITS_MARK, editDraft, editsData, PendingEdits } from "./pending-edits.ts";
import { newestOutputs, type Planning, planned, tokensOnce } from "./plan.ts";
import type { Removal, StrategyName } from "./removal.ts";

/** What the strategies need of the other parts of pruning. */
export interface StrategiesBench extends Workbench {
  readonly pruning: () => PruningConfig;
  readonly off: (ctx: ExtensionContext) => string | undefined;
  readonly blocks?: Pick<Blocks, "on">;
  readonly usage?: (ctx: ExtensionContext) => Usage | undefined;
  /** Whether the user decides when the context is made smaller. Default: as it is configured. */
  readonly isManual?: (ctx: ExtensionContext) => boolean;
}

/** An output, or arguments, that have left the context. */
export interface Pruned {
  readonly recallId: string;
  readonly entryId: string;
  readonly tool: string;
  readonly strategy: string;
  readonly tokens: number;
}

export interface Swept {
  readonly pruned: readonly Pruned[];
  /** Estimated tokens that the next request has less. */
  readonly tokens: number;
}

/** What goes without the model, and what the user has go. */
export interface Strategies {
  /** Why nothing may go now. `undefined`: it may. */
  hinders(ctx: ExtensionContext): string | undefined;
  /**
   * While no run is on: all that the strategies find, or the outputs of so many of the newest calls, whatever they are.
   * Requests go by it at once.
   */
  sweep(calls: number | undefined, ctx: ExtensionContext): Swept;
  /** While a run is on: the same at its next boundary, and at its end if it has none. */
  sweepSoon(calls: number | undefined): void;
}

const part = "strategies";
const nothing: Swept = { pruned: [], tokens: 0 };
/** Sweeps that wait for a boundary. More are the same as these. */
const maxWaiting = 16;

/** What one batch is made of: for the user's sweep, or whatever the strategies find. */
interface Order {
  readonly calls?: number | undefined;
  readonly isForced: boolean;
  readonly isWanted: (strategy: StrategyName) => boolean;
}

/**
 * Takes out at boundaries what is not needed any more: durably, in batches that are worth the provider's cache, each under a
 * number by which it is recalled. Where the cache is cold as a run begins, and where the user asks for it between two runs, an
 * entry says what goes until pi takes the edits.
 */
export function addStrategies(bench: StrategiesBench): Strategies {
  const pending = new PendingEdits(bench);
  const told = new Announcements(bench);
  const waiting: (number | undefined)[] = [];
  const isManual = (ctx: ExtensionContext): boolean => bench.isManual?.(ctx) ?? bench.pruning().manualMode.enabled;
  const hinders = (ctx: ExtensionContext): string | undefined => bench.off(ctx) ?? bench.recall.missing();
  const isOn = (ctx: ExtensionContext): boolean =>
    bench.pruning().enabled &&
    hinders(ctx) === undefined &&
    (!isManual(ctx) || bench.pruning().manualMode.automaticStrategies);

  const found = (order: Order, context: readonly ContextEntry[], ctx: ExtensionContext, edited?: ReadonlySet<string>) =>
    find(bench, order, { context, edited, open: new Set(pending.on(ctx).keys()) }, ctx);

  const at = (order: Order, { state, ctx, edited }: Boundary): SessionBoundaryDraft[] => {
    const batch = found(order, state.context.contextEntries, ctx, edited);
    const replacements = batch === undefined ? [] : replacementsOf(bench, batch, ctx);
    if (batch === undefined || replacements.length === 0) return [];
    told.proposed(replacements);
    changed(bench, replacements);
    return [...recordDrafts(replacements, batch), ...replacements.map(editDraft)];
  };

  bench.recall.need(() => bench.pruning().enabled);
  bench.boundary.contribute(
    part,
    (boundary): BoundaryWish | undefined => {
      const { ctx } = boundary;
      const drafts: SessionBoundaryDraft[] = pending.drafts(ctx);
      const orders = waiting.splice(0).map((calls): Order => ({ calls, isForced: true, isWanted: () => true }));
      const mayActAtAll = hinders(ctx) === undefined;
      const all = [...(mayActAtAll ? orders : []), ...(isOn(ctx) ? [automatic((name) => name !== "sizeDecay")] : [])];
      for (const order of all) {
        const edited = new Set([...(boundary.edited ?? []), ...targetsOf(drafts)]);
        drafts.push(...at(order, { ...boundary, edited }));
      }
      return drafts.length === 0 ? undefined : { drafts };
    },
    { edits: "deduplication" },
  );
  bench.boundary.contribute(
    "sizeDecay",
    (boundary): BoundaryWish | undefined => {
      if (!isOn(boundary.ctx) || !bench.pruning().strategies.sizeDecay.enabled) return undefined;
      const drafts = at(
        automatic((name) => name === "sizeDecay"),
        boundary,
      );
      return drafts.length === 0 ? undefined : { drafts };
    },
    { edits: "decay" },
  );

  /** Between two runs, or before the first request of one: what goes is written at once. */
  const now = (order: Order, ctx: ExtensionContext): Swept => {
    const batch = found(order, ctx.sessionManager.buildSessionProjection().entries, ctx);
    const replacements = batch === undefined ? [] : replacementsOf(bench, batch, ctx);
    if (batch === undefined || replacements.length === 0) return nothing;
    for (const draft of recordDrafts(replacements, batch)) bench.pi.appendEntry(draft.customType, draft.data);
    bench.pi.appendEntry(EDITS_MARK, editsData(replacements));
    changed(bench, replacements);
    told.now(replacements);
    const pruned = replacements.map(prunedOf);
    return { pruned, tokens: pruned.reduce((sum, { tokens }) => sum + tokens, 0) };
  };
  bench.on(part, "agent_start", (_event, ctx) => {
    if (isOn(ctx) && bench.cacheRule.isCold(ctx))
      now(
        automatic(() => true),
        ctx,
      );
  });
  bench.on(part, "agent_settled", (_event, ctx) => {
    told.seen(ctx);
    if (hinders(ctx) !== undefined) waiting.length = 0;
    for (const calls of waiting.splice(0)) now({ calls, isForced: true, isWanted: () => true }, ctx);
  });
  bench.entries.need((_messages, ctx) => pending.on(ctx).size > 0);
  bench.pipeline.use(
    "context_with_system",
    "bash",
    (messages, ctx) => {
      told.seen(ctx);
      return pending.applied(messages, ctx);
    },
    part,
  );

  return {
    hinders,
    sweep: (calls, ctx) =>
      hinders(ctx) === undefined ? now({ calls, isForced: true, isWanted: () => true }, ctx) : nothing,
    sweepSoon: (calls) => {
      if (waiting.length < maxWaiting && !waiting.includes(calls)) waiting.push(calls);
    },
  };
}

function automatic(isWanted: Order["isWanted"]): Order {
  return { isForced: false, isWanted };
}

interface Scene {
  readonly context: readonly ContextEntry[];
  /** Entries that others edit at this boundary. */
  readonly edited: ReadonlySet<string> | undefined;
  /** Entries that are edited by an entry that pi knows nothing of. */
  readonly open: ReadonlySet<string>;
}

function find(bench: StrategiesBench, order: Order, scene: Scene, ctx: ExtensionContext): Batch | undefined {
  const { context, edited = new Set<string>(), open } = scene;
  const blocks = bench.blocks?.on(ctx);
  const isHidden = (entryId: string): boolean => blocks?.over(entryId) !== undefined;
  const isOut = (entryId: string): boolean =>
    edited.has(entryId) || open.has(entryId) || isHidden(entryId) || bench.isUnanswered(entryId);
  const tokensOf = tokensOnce(bench.estimator);
  const planning: Planning = { context, config: bench.pruning(), cwd: ctx.cwd, tokensOf, isOut };
  const { calls, isForced, isWanted } = order;
  const all: readonly Removal[] = calls === undefined ? planned(planning) : newestOutputs(planning, calls);
  const removals = all.filter(({ strategy }) => isWanted(strategy));
  if (removals.length === 0) return undefined;
  const usage = isForced ? undefined : bench.usage?.(ctx);
  const isAboveMax = usage !== undefined && usage.share >= usage.max;
  const changesFrom = firstChange(context, edited, blocks);
  return batchOf(bench, { removals, context, tokensOf, isHidden, changesFrom, isForced, isAboveMax }, ctx);
}

/** Where the next request differs in any case: at another's edit, or at a block that was made since the last answer. */
function firstChange(
  context: readonly ContextEntry[],
  edited: ReadonlySet<string>,
  blocks: ReturnType<Blocks["on"]> | undefined,
): number {
  const answer = context.findLastIndex(({ messages }) => messages.some(({ role }) => role === "assistant"));
  const since = new Set(context.slice(answer + 1).map(({ sourceEntry }) => sourceEntry.id));
  const fresh = new Set(blocks?.active.flatMap((block) => (since.has(block.entryId) ? block.entryIds : [])));
  const first = context.findIndex(({ sourceEntry: { id } }) => edited.has(id) || fresh.has(id));
  return first === -1 ? context.length : first;
}

function targetsOf(drafts: readonly SessionBoundaryDraft[]): string[] {
  return drafts.flatMap((draft) => (draft.type === "context_edit" ? [draft.targetId] : []));
}

/** One entry for each strategy: what it cost is written once, with the first. */
function recordDrafts(replacements: readonly Replacement[], { cost }: Batch) {
  const byStrategy = Map.groupBy(replacements, ({ record }) => record.part);
  return [...byStrategy].map(([strategy, ofOne], index) => ({
    type: "custom" as const,
    customType: RECALL_MARK,
    data: recordData(
      strategy,
      ofOne.map(({ record }) => record),
      index === 0 ? cost : { tokens: 0, usd: 0 },
    ),
  }));
}

function changed({ cacheRule }: StrategiesBench, replacements: readonly Replacement[]): void {
  for (const { record, targetId } of replacements) cacheRule.changed(record.part, [targetId]);
}

function prunedOf({ record, targetId }: Replacement): Pruned {
  const { number, tool, part: strategy, tokens } = record;
  return { recallId: recallIdOf(number), entryId: targetId, tool, strategy, tokens };
}

/** Tells of what has left the context once it stands on the branch: pi may have refused what was proposed. */
class Announcements {
  readonly #bench: StrategiesBench;
  readonly #proposed: (readonly Replacement[])[] = [];

  constructor(bench: StrategiesBench) {
    this.#bench = bench;
  }

  proposed(replacements: readonly Replacement[]): void {
    this.#proposed.push(replacements);
  }

  seen({ sessionManager }: ExtensionContext): void {
    for (const replacements of this.#proposed.splice(0)) {
      const { registry } = this.#bench.recall;
      this.now(
        replacements.filter(({ record, targetId }) =>
          registry
            .ofEntry(targetId, sessionManager)
            .some(({ number, part: by }) => number === record.number && by === record.part),
        ),
      );
    }
  }

  now(replacements: readonly Replacement[]): void {
    if (replacements.length === 0) return;
    const pruned = replacements.slice(0, 1_000).map(({ record }) => recallIdOf(record.number));
    const tokens = Math.round(replacements.reduce((sum, { record }) => sum + record.tokens, 0));
    this.#bench.notify("pruning/changed", { cause: "strategies", blocks: [], pruned, tokens });
  }
}
