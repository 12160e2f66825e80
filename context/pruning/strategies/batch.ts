import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { CacheDecision } from "../../parts/cache/cache-rule.ts";
import type { ContextEntry } from "../../parts/masking/candidates.ts";
import type { PartContext } from "../../parts/optimisation/part-context.ts";
import { type BatchCost, type RecallRecord, recallIdOf } from "../../parts/recall/record.ts";
import type { Removal } from "./removal.ts";
import { replacedBy } from "./replacement.ts";

/** What frees less is not worth a mark that the model has to read. */
const minFreedTokens = 64;
/** Even above the greatest size the cache is not given up for less. */
const minAboveMaxTokens = 1_000;
/** A batch that is too dear as a whole is tried again without its older half, so often. */
const tries = 4;

export interface Freeing {
  readonly removal: Removal;
  readonly freed: number;
}

/** What goes at once, and what that costs. */
export interface Batch {
  readonly freeings: readonly Freeing[];
  readonly freedTokens: number;
  readonly cost: BatchCost;
}

/** Where a batch is looked for. */
export interface Choice {
  readonly removals: readonly Removal[];
  readonly context: readonly ContextEntry[];
  readonly tokensOf: (message: AgentMessage) => number;
  /** An entry that is in no request. */
  readonly isHidden: (entryId: string) => boolean;
  /** The place in the context from which on the next request differs in any case. */
  readonly changesFrom: number;
  /** Whatever it costs: the user wants it. */
  readonly isForced?: boolean;
  readonly isAboveMax: boolean;
}

/** The batch that is worth the provider's cache. `undefined`: there is none now. */
export function batchOf(
  host: Pick<PartContext, "cacheRule">,
  choice: Choice,
  ctx: ExtensionContext,
): Batch | undefined {
  const { removals, tokensOf, isForced = false } = choice;
  const possible = removals.reduce((sum, { target }) => sum + tokensOf(target.message), 0);
  if (possible === 0) return undefined;
  const { cacheRule } = host;
  const isEverWorthIt =
    isForced ||
    isActed(
      choice,
      cacheRule.decide({ freedTokens: possible, suffixTokens: 0, isAboveMax: choice.isAboveMax }, ctx),
      possible,
    );
  if (!isEverWorthIt) return undefined;
  let freeings = removals.flatMap((removal) => {
    const freed = tokensOf(removal.target.message) - tokensOf(replacedBy(removal, recallIdOf(0)));
    return freed < minFreedTokens ? [] : [{ removal, freed }];
  });
  for (let tried = 0; tried < tries && freeings.length > 0; tried += 1) {
    const freedTokens = freeings.reduce((sum, { freed }) => sum + freed, 0);
    const suffixTokens = suffixOf(choice, freeings);
    const { isAboveMax } = choice;
    const decision = cacheRule.decide({ freedTokens, suffixTokens, isAboveMax }, ctx);
    if (isForced || isActed(choice, decision, freedTokens)) {
      const isCold = cacheRule.isCold(ctx);
      return { freeings, freedTokens, cost: { tokens: isCold ? 0 : suffixTokens, usd: decision.costUsd } };
    }
    freeings = freeings.slice(Math.ceil(freeings.length / 2));
  }
  return undefined;
}

function isActed({ isAboveMax }: Choice, { act }: CacheDecision, freedTokens: number): boolean {
  return act && (!isAboveMax || freedTokens >= minAboveMaxTokens);
}

/** Tokens from the first change to where the next request differs anyway, as they are behind the changes. */
function suffixOf({ context, changesFrom, tokensOf, isHidden }: Choice, freeings: readonly Freeing[]): number {
  const from = freeings[0]?.removal.target.at ?? changesFrom;
  let sum = 0;
  for (const { sourceEntry, messages } of context.slice(from, Math.max(from, changesFrom))) {
    if (isHidden(sourceEntry.id)) continue;
    for (const message of messages) sum += tokensOf(message);
  }
  const freed = freeings.reduce((all, one) => all + (one.removal.target.at < changesFrom ? one.freed : 0), 0);
  return Math.max(0, sum - freed);
}

/** An entry's new content, under the number by which the old one is recalled. */
export interface Replacement {
  readonly record: RecallRecord;
  readonly targetId: string;
  readonly content: readonly unknown[];
}

/** A number is given for good, so that this comes last. As many as there are numbers for. */
export function replacementsOf(
  { recall }: Pick<PartContext, "recall">,
  { freeings }: Batch,
  { sessionManager }: ExtensionContext,
): Replacement[] {
  const made: Replacement[] = [];
  for (const { removal, freed } of freeings) {
    const { entryId } = removal.target;
    // The number of a result that was cut gives the whole original.
    const number =
      recall.registry.ofEntry(entryId, sessionManager)[0]?.number ?? recall.registry.reserve(sessionManager);
    if (number === undefined) break;
    const { strategy: part } = removal;
    const place = { kind: "entry", entryId } as const;
    const record: RecallRecord = { number, part, tool: toolOf(removal), tokens: freed, place };
    made.push({ record, targetId: entryId, content: replacedBy(removal, recallIdOf(number)).content });
  }
  return made;
}

/** As a record takes it: a model may have called a tool by any name, which then has failed. */
function toolOf(removal: Removal): string {
  const [first] = removal.kind === "output" ? [] : removal.calls.keys();
  const name = removal.kind === "output" ? removal.call.tool : first?.name;
  return name?.slice(0, 256) || "tool";
}
