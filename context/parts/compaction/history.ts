import { fromLeaf } from "../../../extension/branch-view.ts";
import type { SessionEntry, SessionReader } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";

/** `customType` of the entries that record failed compactions. */
export const COMPACTION_ENTRY = "pi-rpcd.compaction";

/** The `details` of our compaction entries, under the key `pi-rpcd`. */
export interface CompactionDetails {
  readonly v: 1;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly threshold: number;
  readonly window: number;
}

/** Responses on the branch since the last compaction or attempt. `undefined`: none. */
export function turnsSince(session: SessionReader): number | undefined {
  let turns = 0;
  for (const entry of fromLeaf(session)) {
    if (entry.type === "compaction" || isFailedTry(entry)) return turns;
    if (entry.type === "message" && entry.message.role === "assistant") turns += 1;
  }
  return undefined;
}

/** Responses since the last failed compaction. `undefined`: no failure since the last compaction. */
export function turnsSinceFailure(session: SessionReader): number | undefined {
  let turns = 0;
  for (const entry of fromLeaf(session)) {
    if (entry.type === "compaction") return undefined;
    if (isFailedTry(entry)) return turns;
    if (entry.type === "message" && entry.message.role === "assistant") turns += 1;
  }
  return undefined;
}

export interface CompactionHistory {
  readonly compactions: number;
  readonly failed: number;
  readonly turns: number;
  readonly savedTokens: number;
  readonly spentTokens: number;
  readonly spentUsd: number;
  readonly last: CompactionDetails | undefined;
}

/** The savings in later requests and the cost of our compactions on the branch. */
export function historyOf(session: SessionReader): CompactionHistory {
  const history = { compactions: 0, failed: 0, turns: 0, savedTokens: 0, spentTokens: 0, spentUsd: 0 };
  let last: CompactionDetails | undefined;
  for (const entry of fromLeaf(session)) {
    if (entry.type === "message" && entry.message.role === "assistant") history.turns += 1;
    if (isFailedTry(entry)) history.failed += 1;
    if (entry.type !== "compaction") continue;
    const details = detailsOf(entry.details);
    if (details === undefined) continue;
    history.compactions += 1;
    history.savedTokens += Math.max(0, details.tokensBefore - details.tokensAfter) * history.turns;
    history.spentTokens += entry.usage?.totalTokens ?? 0;
    history.spentUsd += entry.usage?.cost.total ?? 0;
    last ??= details;
  }
  return { ...history, last };
}

/** Validates the details, because other extensions and people can write such entries. */
function detailsOf(details: unknown): CompactionDetails | undefined {
  const own = isRecord(details) ? details["pi-rpcd"] : undefined;
  if (!isRecord(own) || own["v"] !== 1) return undefined;
  const { tokensBefore, tokensAfter, threshold, window } = own;
  const all = [tokensBefore, tokensAfter, threshold, window];
  if (!all.every((value) => typeof value === "number" && Number.isFinite(value) && value >= 0)) return undefined;
  return own as unknown as CompactionDetails;
}

function isFailedTry(entry: SessionEntry): boolean {
  return (
    entry.type === "custom" && entry.customType === COMPACTION_ENTRY && isRecord(entry.data) && entry.data["v"] === 1
  );
}
