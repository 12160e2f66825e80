import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { fromLeaf } from "../../../extension/branch-view.ts";
import type { SessionEntry } from "../../../extension/pi-types.ts";
import { fromBlocks } from "./content.ts";

type Session = Pick<ExtensionContext["sessionManager"], "getLeafEntry" | "getEntry">;
/** Maximum depth of arguments. */
const maxDepth = 64;

type Edit = Extract<SessionEntry, { type: "context_edit" }>;

/**
 * Returns the newest edit of an entry on the branch, unless it is a placeholder with this id. Such an edit by another
 * extension is respected, because it can hide a secret.
 */
export function othersEdit(entryId: string, recallId: string, session: Session): Edit | undefined {
  for (const entry of fromLeaf(session)) {
    if (entry.id === entryId) break;
    if (entry.type === "context_edit" && entry.targetId === entryId)
      return isOurs(entry, recallId, session) ? undefined : entry;
  }
  return undefined;
}

function isOurs({ targetId, replacement }: Edit, recallId: string, session: Session): boolean {
  if (replacement === null) return false;
  const { text } = fromBlocks(replacement.content);
  if (text.startsWith("[") && text.includes(`recall ${recallId}]`)) return true;
  const target = session.getEntry(targetId);
  if (target?.type !== "message") return false;
  const { message } = target;
  if (message.role === "assistant") return areMarked(replacement.content, message.content, `; recall ${recallId}]`);
  return message.role === "toolResult" && isCutOf(text, fromBlocks(message.content).text, `; recall ${recallId} …]`);
}

/** Whether a text is the beginning and the end of another one around a mark. */
function isCutOf(text: string, whole: string, mark: string): boolean {
  const end = text.indexOf(mark) + mark.length;
  const start = text.lastIndexOf("[… ", end - mark.length);
  if (end < mark.length || start < 0) return false;
  const head = text.slice(0, start).replace(/\n$/u, "");
  return whole.startsWith(head) && whole.endsWith(text.slice(end).replace(/^\n/u, ""));
}

/** Whether a value equals another one except for texts that marks replace. */
function areMarked(value: unknown, whole: unknown, mark: string, depth = 0): boolean {
  if (typeof value === "string") return value === whole || (value.startsWith("[") && value.endsWith(mark));
  if (typeof value !== "object" || value === null) return value === whole;
  if (typeof whole !== "object" || whole === null || depth > maxDepth) return false;
  const was = new Map(Object.entries(whole));
  const is = Object.entries(value);
  return is.length === was.size && is.every(([name, one]) => areMarked(one, was.get(name), mark, depth + 1));
}
