import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { CacheDecision } from "../../parts/cache/cache-rule.ts";
import { type ContextEntry, cachedUntil } from "../../parts/masking/candidates.ts";
import { type BatchCost, batchCost, type RecallRecord, recallIdOf } from "../../parts/recall/record.ts";
import type { PruningServices } from "../pruning-services.ts";
import type { Removal } from "./removal.ts";
import { replacedBy } from "./replacement.ts";

/** Smaller removals are not worth the mark that replaces them. */
const minFreedTokens = 64;
/** Attempts; each retries an expensive batch without its older half. */
const tries = 4;

export interface PricedRemoval {
  readonly removal: Removal;
  readonly freed: number;
}

/** Removals of one batch, and their cost. */
export interface Batch {
  readonly priced: readonly PricedRemoval[];
  readonly freedTokens: number;
  readonly cost: BatchCost;
}

/** The input of the search for a batch. */
export interface Choice {
  readonly removals: readonly Removal[];
  readonly context: readonly ContextEntry[];
  readonly tokensOf: (message: AgentMessage) => number;
  /** Whether an entry is absent from requests. */
  readonly isHidden: (entryId: string) => boolean;
  /** The first place in the context that changes in the next request anyway. */
  readonly changesFrom: number;
  /** The user requested it, so the cost is ignored. */
  readonly isForced?: boolean;
  readonly isAboveMax: boolean;
}

/** Returns the batch that is worth losing the provider's cache. `undefined`: none now. */
export function batchOf(
  host: Pick<PruningServices, "cacheRule">,
  choice: Choice,
  ctx: ExtensionContext,
): Batch | undefined {
  const { removals, tokensOf, isForced = false, isAboveMax } = choice;
  const possible = removals.reduce((sum, { target }) => sum + tokensOf(target.message), 0);
  if (possible === 0) return undefined;
  const { cacheRule } = host;
  const decided = (freedTokens: number, suffixTokens: number): CacheDecision =>
    cacheRule.decide({ freedTokens, suffixTokens, isAboveMax }, ctx);
  if (!isForced && !decided(possible, 0).act) return undefined;
  let priced = removals.flatMap((removal) => {
    const freed = tokensOf(removal.target.message) - tokensOf(replacedBy(removal, recallIdOf(0)));
    return freed < minFreedTokens ? [] : [{ removal, freed }];
  });
  for (let tried = 0; tried < tries && priced.length > 0; tried += 1) {
    const freedTokens = priced.reduce((sum, { freed }) => sum + freed, 0);
    const { act, forecast } = decided(freedTokens, suffixOf(choice, priced));
    if (isForced || act) return { priced, freedTokens, cost: batchCost(forecast) };
    priced = priced.slice(Math.ceil(priced.length / 2));
  }
  return undefined;
}

/** Cached tokens after the changes, from the first change to the first place that changes anyway. */
function suffixOf({ context, changesFrom: end, tokensOf, isHidden }: Choice, priced: readonly PricedRemoval[]): number {
  const changesFrom = Math.min(end, cachedUntil(context));
  const from = priced[0]?.removal.target.at ?? changesFrom;
  let sum = 0;
  for (const { sourceEntry, messages } of context.slice(from, Math.max(from, changesFrom))) {
    if (isHidden(sourceEntry.id)) continue;
    for (const message of messages) sum += tokensOf(message);
  }
  const freed = priced.reduce((all, one) => all + (one.removal.target.at < changesFrom ? one.freed : 0), 0);
  return Math.max(0, sum - freed);
}

/** An entry's new content, with the recall number of the old content. */
export interface Replacement {
  readonly record: RecallRecord;
  readonly targetId: string;
  readonly content: readonly unknown[];
}

/** Runs last, because a reserved number is never returned. Stops when no number is left. */
export function replacementsOf(
  { recall }: Pick<PruningServices, "recall">,
  { priced }: Batch,
  { sessionManager }: ExtensionContext,
): Replacement[] {
  const made: Replacement[] = [];
  for (const { removal, freed } of priced) {
    const { entryId } = removal.target;
    // The number of a cut result returns the whole original.
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

/** The tool name for a record; a failed call can have any name. */
function toolOf(removal: Removal): string {
  const [first] = removal.kind === "output" ? [] : removal.calls.keys();
  const name = removal.kind === "output" ? removal.call.tool : first?.name;
  return name?.slice(0, 256) || "tool";
}
