import type { ExtensionContext, SessionBoundaryDraft } from "@earendil-works/pi-coding-agent";
import type { Boundary, BoundaryProposal } from "../../../extension/boundary.ts";
import type { HostPort } from "../../../extension/engine-port.ts";
import type { OptimisationConfig } from "../../../protocol/optimisation/config.ts";
import type { CacheRule } from "../cache/cache-rule.ts";
import { type TokenEstimator, tokensOnce } from "../estimator/estimator.ts";
import type { PartStatus } from "../optimisation/part-states.ts";
import { placeholderOf } from "../recall/placeholder.ts";
import type { Recall } from "../recall/recall.ts";
import { noNumberLeft, RECALL_MARK, type RecallRecord, recallIdOf, recordData } from "../recall/record.ts";
import { recallReport } from "../recall/report.ts";
import { type ContextEntry, isCandidate, type Output, type OutputFacts, outputsOf } from "./candidates.ts";
import { maskedCommand } from "./commands.ts";

type Masking = OptimisationConfig["masking"];
type Edit = Extract<SessionBoundaryDraft, { type: "context_edit" }>;

const part = "masking";
/** Smaller outputs are not worth a placeholder. */
const minFreedTokens = 64;
const protectedShareOfWindow = 0.25;

/** An output to mask. */
interface Mask {
  readonly output: Output;
  readonly freed: number;
}

export interface MaskingNeeds {
  readonly config: () => Masking;
  readonly recall: Recall;
  readonly cacheRule: Pick<CacheRule, "decide" | "changed">;
  readonly estimator: Pick<TokenEstimator, "message">;
  readonly status: PartStatus;
}

/** Replaces old outputs by placeholders in the session, in batches that are worth losing the provider's cache. */
export function addMasking({ boundary: writer }: Pick<HostPort, "boundary">, needs: MaskingNeeds): void {
  const { recall, status } = needs;
  recall.need(() => needs.config().enabled);
  let isMissing = false;
  writer.contribute(
    part,
    (boundary) => {
      const config = needs.config();
      if (!config.enabled) return undefined;
      const missing = recall.missing();
      if (missing !== undefined) status.degraded(missing);
      else if (isMissing) status.restored();
      isMissing = missing !== undefined;
      // Entries covered by a block are in no request.
      const isHidden = (entryId: string): boolean => writer.isProtected(entryId, boundary.ctx);
      return isMissing ? undefined : maskAt(needs, config, boundary, isHidden);
    },
    { edits: "masking" },
  );
  status.inspect((ctx) => recallReport(needs, part, ctx));
}

function maskAt(
  needs: MaskingNeeds,
  config: Masking,
  { state, ctx, edited }: Boundary,
  isHidden: (entryId: string) => boolean,
): BoundaryProposal | undefined {
  const { cacheRule } = needs;
  const context = state.context.contextEntries;
  const tokensOf = tokensOnce(needs.estimator);
  const rules = rulesOf(config, ctx);
  const candidates = outputsOf(
    context,
    tokensOf,
    (output) =>
      isCandidate(output, rules) &&
      edited?.has(output.entryId) !== true &&
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
  const seen = context.slice(first.output.at).filter(({ sourceEntry }) => !isHidden(sourceEntry.id));
  const after = seen.flatMap(({ messages }) => messages);
  const suffixTokens = after.reduce((sum, message) => sum + tokensOf(message), 0) - freedTokens;
  const decision = cacheRule.decide({ freedTokens, suffixTokens }, ctx);
  if (!decision.act) return undefined;
  const drafts = draftsOf(needs, masks, config, ctx);
  if (drafts.length === 0) {
    needs.status.degraded(noNumberLeft);
    return undefined;
  }
  const records = drafts.map(({ record }) => record);
  const cost = { tokens: decision.why === "cold" ? 0 : suffixTokens, usd: decision.costUsd };
  cacheRule.changed(
    part,
    masks.slice(0, drafts.length).map(({ output }) => output.entryId),
  );
  return {
    drafts: [
      { type: "custom", customType: RECALL_MARK, data: recordData(part, records, cost) },
      ...drafts.flatMap(({ edit }) => edit ?? []),
    ],
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
function draftsOf(
  { recall }: MaskingNeeds,
  masks: readonly Mask[],
  config: Masking,
  { sessionManager }: ExtensionContext,
) {
  const drafts: { readonly record: RecallRecord; readonly edit?: Edit }[] = [];
  for (const { output, freed } of masks) {
    const { entryId, tool, message } = output;
    // The number of a cut result returns the whole original.
    const known = recall.registry.ofEntry(entryId, sessionManager)[0];
    const number = known?.number ?? recall.registry.reserve(sessionManager);
    if (number === undefined) break;
    const record: RecallRecord = { number, part, tool, tokens: freed, place: { kind: "entry", entryId } };
    // A command's entry cannot be edited: the record is enough.
    if (message.role === "bashExecution") drafts.push({ record });
    else drafts.push({ record, edit: editOf(output, placeholderIn(output, config, recallIdOf(number)), config) });
  }
  return drafts;
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

function editOf(output: Output, placeholder: string, config: Masking): Edit {
  const replacement = { content: maskedContent(output, placeholder, config) };
  return { type: "context_edit", targetId: output.entryId, replacement };
}
