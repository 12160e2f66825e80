import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { CacheRule } from "../cache/cache-rule.ts";
import { type TokenEstimator, tokensOnce } from "../estimator/estimator.ts";
import type { PartStatus } from "../optimisation/part-states.ts";
import { EDITS_MARK, editDraft, editsData, type PendingEdits } from "../recall/pending-edits.ts";
import { placeholderOf } from "../recall/placeholder.ts";
import type { Recall } from "../recall/recall.ts";
import { batchCost, noNumberLeft, RECALL_MARK, type RecallRecord, recallIdOf, recordData } from "../recall/record.ts";
import { recallReport } from "../recall/report.ts";
import { type ContextEntry, cachedUntil, isCandidate, type Output, type OutputFacts, outputsOf } from "./candidates.ts";
import { maskedCommand } from "./commands.ts";

type Masking = OptimisationConfig["masking"];

const part = "masking";
/** Smaller outputs are not worth a placeholder. */
const minFreedTokens = 64;
const protectedShareOfWindow = 0.25;

/** An output to mask. */
interface Mask {
  readonly output: Output;
  readonly freed: number;
}

/** Outputs that are masked together. `replacements`: those that pi can edit. */
interface Batch {
  readonly data: object;
  readonly replacements: readonly Replacement[];
}

interface Replacement {
  readonly targetId: string;
  readonly content: ReturnType<typeof maskedContent>;
}

/** The context at the time of a decision. */
interface Scene {
  readonly context: readonly ContextEntry[];
  /** Entries that other parts edit now. */
  readonly edited: ReadonlySet<string>;
  readonly ctx: ExtensionContext;
}

export interface MaskingNeeds {
  readonly pi: Pick<ExtensionAPI, "appendEntry">;
  readonly config: () => Masking;
  readonly recall: Recall;
  readonly pending: Pick<PendingEdits, "on" | "rest">;
  readonly cacheRule: Pick<CacheRule, "decide" | "changed" | "isCold">;
  readonly estimator: Pick<TokenEstimator, "message">;
  readonly status: PartStatus;
}

/**
 * Replaces old outputs by placeholders in the session, in batches that are worth losing the provider's cache: at
 * boundaries, and at the start of a run if the cache is cold. pi accepts edits only at boundaries, so those of a run's start
 * are pending until then.
 */
export function addMasking({ boundary: writer, on }: Pick<HostPort, "boundary" | "on">, needs: MaskingNeeds): void {
  const { pi, recall, pending, cacheRule, status } = needs;
  recall.need(() => needs.config().enabled);
  // Without the tool, the model could not get back what these edits hide.
  pending.rest(part, () => recall.missing() !== undefined);
  let isMissing = false;
  const batchOf = (
    scene: Pick<Scene, "context" | "ctx">,
    edited: ReadonlySet<string> = new Set(),
  ): Batch | undefined => {
    const config = needs.config();
    if (!config.enabled) return undefined;
    const missing = recall.missing();
    if (missing !== undefined) status.degraded(missing);
    else if (isMissing) status.restored();
    isMissing = missing !== undefined;
    if (isMissing) return undefined;
    // Entries covered by a block are in no request.
    const isHidden = (entryId: string): boolean => writer.isProtected(entryId, scene.ctx);
    const open = pending.on(scene.ctx).keys();
    return maskIn(needs, config, { ...scene, edited: new Set([...edited, ...open]) }, isHidden);
  };
  writer.contribute(
    part,
    ({ state, ctx, edited }) => {
      const batch = batchOf({ context: state.context.contextEntries, ctx }, edited);
      if (batch === undefined) return undefined;
      const record = { type: "custom", customType: RECALL_MARK, data: batch.data } as const;
      return { drafts: [record, ...batch.replacements.map(editDraft)] };
    },
    { edits: "masking" },
  );
  on(part, "agent_start", (_event, ctx) => {
    if (!needs.config().enabled || !cacheRule.isCold(ctx)) return;
    const batch = batchOf({ context: ctx.sessionManager.buildSessionProjection().entries, ctx });
    if (batch === undefined) return;
    pi.appendEntry(RECALL_MARK, batch.data);
    if (batch.replacements.length > 0) pi.appendEntry(EDITS_MARK, editsData(part, batch.replacements));
  });
  status.inspect((ctx) => recallReport(needs, part, ctx));
}

function maskIn(
  needs: MaskingNeeds,
  config: Masking,
  { context, edited, ctx }: Scene,
  isHidden: (entryId: string) => boolean,
): Batch | undefined {
  const { cacheRule } = needs;
  const tokensOf = tokensOnce(needs.estimator);
  const rules = rulesOf(config, ctx);
  const candidates = outputsOf(
    context,
    tokensOf,
    (output) =>
      isCandidate(output, rules) &&
      !edited.has(output.entryId) &&
      !isHidden(output.entryId) &&
      !isTakenOut(needs, output, context, ctx),
  );
  const possible = candidates.reduce((sum, { tokens }) => sum + tokens, 0);
  if (possible === 0) return undefined;
  const mayAct = cacheRule.decide({ freedTokens: possible, suffixTokens: 0 }, ctx);
  if (!mayAct.act) return undefined;
  const masks = masksOf(needs, candidates, config);
  const first = masks[0];
  if (first === undefined) return undefined;
  const freedTokens = masks.reduce((sum, { freed }) => sum + freed, 0);
  const cached = context
    .slice(first.output.at, Math.max(first.output.at, cachedUntil(context)))
    .filter(({ sourceEntry }) => !isHidden(sourceEntry.id))
    .flatMap(({ messages }) => messages);
  const suffixTokens = Math.max(0, cached.reduce((sum, message) => sum + tokensOf(message), 0) - freedTokens);
  const { act, forecast } = cacheRule.decide({ freedTokens, suffixTokens }, ctx);
  if (!act) return undefined;
  const made = replacedBy(needs, masks, config, ctx);
  if (made.length === 0) {
    needs.status.degraded(noNumberLeft);
    return undefined;
  }
  cacheRule.changed(
    part,
    masks.slice(0, made.length).map(({ output }) => output.entryId),
  );
  const records = made.map(({ record }) => record);
  return {
    data: recordData(part, records, batchCost(forecast)),
    replacements: made.flatMap(({ replacement }) => replacement ?? []),
  };
}

function rulesOf(config: Masking, { model }: ExtensionContext) {
  const share = protectedShareOfWindow * (model?.contextWindow ?? Number.POSITIVE_INFINITY);
  return { ...config, protectTokens: Math.min(config.protectTokens, share) };
}

/** The entry of a command cannot be edited, so a record on the branch tells that it is masked. */
function isTakenOut(
  { recall }: MaskingNeeds,
  { message, entryId }: OutputFacts,
  context: readonly ContextEntry[],
  { sessionManager }: ExtensionContext,
): boolean {
  if (message.role !== "bashExecution") return false;
  const holders = new Set(recall.registry.ofEntry(entryId, sessionManager).map(({ heldBy }) => heldBy));
  return holders.size > 0 && context.some(({ sourceEntry }) => holders.has(sourceEntry.id));
}

function masksOf(needs: MaskingNeeds, outputs: readonly Output[], config: Masking): Mask[] {
  return outputs.flatMap((output) => {
    const freed = freedBy(needs, output, placeholderIn(output, config, recallIdOf(0)), config);
    return freed < minFreedTokens ? [] : [{ output, freed }];
  });
}

/** Runs last, because a reserved number is never returned. Stops when no number is left. */
function replacedBy(
  { recall }: MaskingNeeds,
  masks: readonly Mask[],
  config: Masking,
  { sessionManager }: ExtensionContext,
) {
  const made: { readonly record: RecallRecord; readonly replacement?: Replacement }[] = [];
  for (const { output, freed } of masks) {
    const { entryId, tool, message } = output;
    // The number of a cut result returns the whole original.
    const known = recall.registry.ofEntry(entryId, sessionManager)[0];
    const number = known?.number ?? recall.registry.reserve(sessionManager);
    if (number === undefined) break;
    const record: RecallRecord = { number, part, tool, tokens: freed, place: { kind: "entry", entryId } };
    // A command's entry cannot be edited: the record is enough.
    if (message.role === "bashExecution") made.push({ record });
    else {
      const content = maskedContent(output, placeholderIn(output, config, recallIdOf(number)), config);
      made.push({ record, replacement: { targetId: entryId, content } });
    }
  }
  return made;
}

function placeholderIn(output: Output, { images }: Masking, recallId: string): string {
  const gone = images === "mask" ? output.images.length : 0;
  return placeholderOf({ ...output, images: gone, why: "masked", recallId });
}

function freedBy({ estimator }: MaskingNeeds, output: Output, placeholder: string, config: Masking): number {
  const { message, tokens } = output;
  const masked =
    message.role === "toolResult"
      ? { ...message, content: maskedContent(output, placeholder, config) }
      : maskedCommand(message, placeholder);
  return tokens - estimator.message(masked);
}

function maskedContent({ images }: Output, placeholder: string, config: Masking) {
  return [{ type: "text" as const, text: placeholder }, ...(config.images === "keep" ? images : [])];
}
