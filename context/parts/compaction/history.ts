import { isObject, type SessionEntry, type SessionReader } from "../../../extension/pi-types.ts";

/** `customType` of the entries that say that a compaction has failed. */
export const COMPACTION_ENTRY = "pi-rpcd.compaction";

/** What an entry of a compaction of ours says in its `details`, below the name `pi-rpcd`. */
export interface CompactionDetails {
  readonly v: 1;
  readonly tokensBefore: number;
  readonly tokensAfter: number;
  readonly threshold: number;
  readonly window: number;
}

/** How many responses stand on the branch behind the last compaction, or try of one. `undefined`: there was none. */
export function turnsSince(session: SessionReader): number | undefined {
  let turns = 0;
  for (const entry of backwards(session)) {
    if (entry.type === "compaction" || isFailedTry(entry)) return turns;
    if (entry.type === "message" && entry.message.role === "assistant") turns += 1;
  }
  return undefined;
}

/** How many responses stand behind the last try of a compaction that has failed. `undefined`: none has since the last compaction. */
export function turnsSinceFailure(session: SessionReader): number | undefined {
  let turns = 0;
  for (const entry of backwards(session)) {
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

/** What the compactions of ours on the branch have saved in the requests behind them, and cost. */
export function historyOf(session: SessionReader): CompactionHistory {
  const history = { compactions: 0, failed: 0, turns: 0, savedTokens: 0, spentTokens: 0, spentUsd: 0 };
  let last: CompactionDetails | undefined;
  for (const entry of backwards(session)) {
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

/** Other extensions, and people, can write such entries too. */
function detailsOf(details: unknown): CompactionDetails | undefined {
  const own = isObject(details) ? details["pi-rpcd"] : undefined;
  if (!isObject(own) || own["v"] !== 1) return undefined;
  const { tokensBefore, tokensAfter, threshold, window } = own;
  const all = [tokensBefore, tokensAfter, threshold, window];
  if (!all.every((value) => typeof value === "number" && Number.isFinite(value) && value >= 0)) return undefined;
  return own as unknown as CompactionDetails;
}

function isFailedTry(entry: SessionEntry): boolean {
  return (
    entry.type === "custom" && entry.customType === COMPACTION_ENTRY && isObject(entry.data) && entry.data["v"] === 1
  );
}

function* backwards(session: SessionReader): Generator<SessionEntry> {
  let entry = session.getLeafEntry();
  while (entry !== undefined) {
    yield entry;
    entry = entry.parentId === null ? undefined : session.getEntry(entry.parentId);
  }
}
