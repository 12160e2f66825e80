import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { SessionEntry } from "../../pi-types.ts";
import { fromBlocks } from "./content.ts";

type Session = Pick<ExtensionContext["sessionManager"], "getLeafEntry" | "getEntry">;
type Edit = Extract<SessionEntry, { type: "context_edit" }>;

/**
 * The newest edit of an entry on the branch, unless it is a placeholder with this id: then somebody else has changed what the
 * model is to see of it, and may have had a reason.
 */
export function othersEdit(entryId: string, recallId: string, session: Session): Edit | undefined {
  const seen = new Set<string>();
  let entry = session.getLeafEntry();
  while (entry !== undefined && !seen.has(entry.id) && entry.id !== entryId) {
    if (entry.type === "context_edit" && entry.targetId === entryId) return isOurs(entry, recallId) ? undefined : entry;
    seen.add(entry.id);
    entry = entry.parentId === null ? undefined : session.getEntry(entry.parentId);
  }
  return undefined;
}

function isOurs({ replacement }: Edit, recallId: string): boolean {
  if (replacement === null) return false;
  const { text } = fromBlocks(replacement.content);
  return text.startsWith("[") && text.includes(`recall ${recallId}]`);
}
