import type { AgentMessage, SessionEntry } from "../../../extension/pi-types.ts";

/** An entry with what the model sees of it. */
export interface SeenEntry {
  readonly sourceEntry: SessionEntry;
  readonly messages: readonly AgentMessage[];
}

export interface Cut {
  /** What a summary is to stand for. */
  readonly summarised: readonly AgentMessage[];
  readonly firstKeptEntryId: string;
  readonly summarisedTokens: number;
  readonly keptTokens: number;
}

export interface CutOptions {
  /** Tokens of the newest messages that stay, if that can be had without parting a call from its results. */
  readonly keepRecentTokens: number;
  readonly tokensOf: (message: AgentMessage) => number;
  /** Whether an entry carries a push that is neither answered nor terminal: it stays, and all behind it. */
  readonly isUnanswered: (entryId: string) => boolean;
}

/** Where a context may be cut so that at most so much stays; the last turn always does. `undefined`: nowhere. */
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
  if (first === undefined) return undefined;
  const summarised = seen.slice(0, at).flatMap(({ messages }) => messages.filter(({ role }) => role !== "system"));
  const summarisedTokens = sizes.slice(0, at).reduce((sum, size) => sum + size, 0);
  return { summarised, firstKeptEntryId: first.sourceEntry.id, summarisedTokens, keptTokens };
}

/** What is kept begins with no result: its call would be gone. */
function mayBeFirst({ sourceEntry, messages }: SeenEntry): boolean {
  return sourceEntry.type !== "compaction" && messages[0]?.role !== "toolResult";
}
