import type { Content } from "../../protocol/content.ts";
import type { SessionEntry, SessionReader } from "../pi-types.ts";
import { deliveryIdOf } from "./marker.ts";

/** A push's entry on the active branch. */
export interface MarkedEntry {
  readonly deliveryId: string;
  readonly entryId: string;
  readonly content: Content;
}

/** The entries of these ids on the active branch. The newest entries are looked at first, since what is sought is new. */
export function findOnBranch(session: SessionReader, wanted: ReadonlySet<string>): Map<string, MarkedEntry> {
  const found = new Map<string, MarkedEntry>();
  if (wanted.size === 0) return found;
  for (const entry of fromLeaf(session)) {
    const marked = markedEntry(entry);
    if (marked === undefined || !wanted.has(marked.deliveryId)) continue;
    found.set(marked.deliveryId, marked);
    if (found.size === wanted.size) break;
  }
  return found;
}

/** The pushes of the active branch that no complete answer follows, the oldest first. */
export function findUnanswered(session: SessionReader): MarkedEntry[] {
  const found: MarkedEntry[] = [];
  for (const entry of fromLeaf(session)) {
    if (entry.type === "message" && isComplete(entry.message)) break;
    const marked = markedEntry(entry);
    if (marked !== undefined) found.push(marked);
  }
  return found.reverse();
}

/** Why an entry that stood in the transcript is in no request any more. */
export function whyGone(
  session: SessionReader,
  entryId: string,
): "compacted" | "removed_by_extension" | "session_replaced" {
  let firstKept: string | undefined;
  let isKept = true;
  for (const entry of fromLeaf(session)) {
    if (entry.id === entryId) return isKept ? "removed_by_extension" : "compacted";
    if (entry.id === firstKept) isKept = false;
    if (entry.type === "compaction" && firstKept === undefined) {
      firstKept = entry.firstKeptEntryId;
      isKept = firstKept !== entry.id;
    }
  }
  return "session_replaced";
}

function* fromLeaf(session: SessionReader): Generator<SessionEntry> {
  let entry = session.getLeafEntry();
  while (entry !== undefined) {
    yield entry;
    entry = entry.parentId === null ? undefined : session.getEntry(entry.parentId);
  }
}

function markedEntry(entry: SessionEntry): MarkedEntry | undefined {
  if (entry.type !== "custom_message") return undefined;
  const deliveryId = deliveryIdOf(entry);
  return deliveryId === undefined ? undefined : { deliveryId, entryId: entry.id, content: entry.content as Content };
}

function isComplete(message: Extract<SessionEntry, { type: "message" }>["message"]): boolean {
  return message.role === "assistant" && message.stopReason !== "error" && message.stopReason !== "aborted";
}
