import type { Content } from "../../protocol/content.ts";
import type { LeftOutReason } from "../../protocol/link.ts";
import { fromLeaf } from "../branch-view.ts";
import type { SessionEntry, SessionReader, TreeReader } from "../pi-types.ts";
import { deliveryIdOf } from "./marker.ts";

/** The entry of a push in the session, on any branch. */
export interface MarkedEntry {
  readonly deliveryId: string;
  readonly entryId: string;
  readonly content: Content;
}

/**
 * Finds the entries of pushes on all branches, because pi can return to any of them. The active branch wins for
 * duplicate ids. It is searched first, newest entry first, because most pushes are new.
 */
export function findEntries(session: TreeReader, wanted: ReadonlySet<string>): Map<string, MarkedEntry> {
  const found = new Map<string, MarkedEntry>();
  const take = (entry: SessionEntry): void => {
    const marked = markedEntry(entry);
    if (marked !== undefined && wanted.has(marked.deliveryId) && !found.has(marked.deliveryId)) {
      found.set(marked.deliveryId, marked);
    }
  };
  if (wanted.size === 0) return found;
  for (const entry of fromLeaf(session)) {
    take(entry);
    if (found.size === wanted.size) return found;
  }
  for (const entry of session.getEntries()) take(entry);
  return found;
}

/** Pushes of the active branch without a complete answer after them, oldest first. */
export function findUnanswered(session: SessionReader): MarkedEntry[] {
  const found: MarkedEntry[] = [];
  for (const entry of fromLeaf(session)) {
    if (entry.type === "message" && isComplete(entry.message)) break;
    const marked = markedEntry(entry);
    if (marked !== undefined) found.push(marked);
  }
  return found.reverse();
}

/**
 * Why a request omits a push: permanently if the entry is compacted or not in the session, otherwise until it returns.
 */
export function whyLeftOut(session: SessionReader, entryId: string): LeftOutReason {
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
  return session.getEntry(entryId) === undefined ? "session_replaced" : "off_branch";
}

function markedEntry(entry: SessionEntry): MarkedEntry | undefined {
  if (entry.type !== "custom_message") return undefined;
  const deliveryId = deliveryIdOf(entry);
  return deliveryId === undefined ? undefined : { deliveryId, entryId: entry.id, content: entry.content as Content };
}

function isComplete(message: Extract<SessionEntry, { type: "message" }>["message"]): boolean {
  return message.role === "assistant" && message.stopReason !== "error" && message.stopReason !== "aborted";
}
