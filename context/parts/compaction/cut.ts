import type { AgentMessage, SessionEntry } from "../../../extension/pi-types.ts";

/** An entry with the messages that the model sees. */
export interface SeenEntry {
  readonly sourceEntry: SessionEntry;
  readonly messages: readonly AgentMessage[];
}

export interface Cut {
  /** The messages that the summary replaces. */
  readonly summarised: readonly AgentMessage[];
  readonly lastSummarisedEntryId: string;
  readonly firstKeptEntryId: string;
  readonly summarisedTokens: number;
  readonly keptTokens: number;
}

export interface CutOptions {
  /** Tokens of the newest messages to keep, without separating a call from its results. */
  readonly keepRecentTokens: number;
  readonly tokensOf: (message: AgentMessage) => number;
  /** Whether an entry carries a push that is neither answered nor terminal. It stays, with everything after it. */
  readonly isUnanswered: (entryId: string) => boolean;
}

/** Finds the place to cut so that at most `keepRecentTokens` stay, and at least the last turn. `undefined`: none. */
export function cutOf(entries: readonly SeenEntry[], options: CutOptions): Cut | undefined {
  const seen = entries.filter(({ messages }) => messages.some(({ role }) => role !== "system"));
  const unanswered = seen.findIndex(({ sourceEntry }) => options.isUnanswered(sourceEntry.id));
  const last = unanswered < 0 ? seen.length - 1 : unanswered;
  const sizes = seen.map(({ messages }) => messages.reduce((sum, message) => sum + options.tokensOf(message), 0));
  let at: number | undefined;
  let kept = 0;
  let keptTokens = 0;
  for (let index = seen.length - 1; index > 0; index -= 1) {
    kept += sizes[index] as number;
    if (index > last || !mayBeFirst(seen[index] as SeenEntry)) continue;
    if (at !== undefined && kept > options.keepRecentTokens) break;
    at = index;
    keptTokens = kept;
  }
  const first = at === undefined ? undefined : seen[at];
  const lastSummarised = at === undefined ? undefined : seen[at - 1];
  if (first === undefined || lastSummarised === undefined) return undefined;
  const summarised = seen.slice(0, at).flatMap(({ messages }) => messages.filter(({ role }) => role !== "system"));
  const summarisedTokens = sizes.slice(0, at).reduce((sum, size) => sum + size, 0);
  return {
    summarised,
    lastSummarisedEntryId: lastSummarised.sourceEntry.id,
    firstKeptEntryId: first.sourceEntry.id,
    summarisedTokens,
    keptTokens,
  };
}

/** The kept part must not start with a result, because its call would be missing. */
function mayBeFirst({ sourceEntry, messages }: SeenEntry): boolean {
  return sourceEntry.type !== "compaction" && messages[0]?.role !== "toolResult";
}
