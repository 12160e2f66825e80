import { isRecord } from "../../protocol/objects.ts";
import type { EntryLabel } from "../../protocol/tree.ts";
import type { StoredEntries, StoredEntry } from "./stored-entries.ts";

type Message = Readonly<Record<string, unknown>>;

/**
 * The context of pi after loading the file (`buildSessionProjection` of pi, the same in all versions): the newest
 * compaction of the branch, its kept entries, and the entries after it, each with its newest edit.
 */
export function contextMessages(stored: StoredEntries): readonly Message[] {
  const path = branchOf(stored);
  const newest = path.findLastIndex(({ type }) => type === "compaction");
  const shown =
    newest === -1 ? path : [path[newest] as StoredEntry, ...keptBy(path, newest), ...path.slice(newest + 1)];
  const edits = new Map<unknown, unknown>();
  for (const { type, targetId, replacement } of shown) if (type === "context_edit") edits.set(targetId, replacement);
  return shown.flatMap((entry, index) => {
    // An older compaction can be among the kept entries of the newest one.
    if (entry["type"] === "compaction" && index > 0) return [];
    const messages = messagesOf(entry);
    if (!edits.has(entry["id"])) return messages;
    const replacement = edits.get(entry["id"]);
    return isRecord(replacement) ? messages.map((message) => edited(message, replacement["content"])) : [];
  });
}

/** The user messages of all branches. */
export function forkMessages({ entries }: StoredEntries): { readonly entryId: string; readonly text: string }[] {
  return entries.flatMap(({ type, id, message }) => {
    if (type !== "message" || !isRecord(message) || message["role"] !== "user") return [];
    const text = textOf(message["content"]);
    return text === "" ? [] : [{ entryId: String(id), text }];
  });
}

/** The text of the last assistant message that has text or was not aborted. */
export function lastText(stored: StoredEntries): string | null {
  const last = contextMessages(stored).findLast(
    ({ role, stopReason, content }) =>
      role === "assistant" && !(stopReason === "aborted" && Array.isArray(content) && content.length === 0),
  );
  return textOf(last?.["content"]).trim() || null;
}

/** The sums of pi's `get_session_stats`, over all branches. */
export function statsOf({ entries }: StoredEntries) {
  const counts = { userMessages: 0, assistantMessages: 0, toolCalls: 0, toolResults: 0, totalMessages: 0 };
  const tokens = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
  let cost = 0;
  const add = (usage: unknown): void => {
    if (!isRecord(usage)) return;
    for (const kind of ["input", "output", "cacheRead", "cacheWrite"] as const) {
      tokens[kind] += numberOf(usage[kind]);
      tokens.total += numberOf(usage[kind]);
    }
    cost += isRecord(usage["cost"]) ? numberOf(usage["cost"]["total"]) : 0;
  };
  for (const { type, usage, message } of entries) {
    if (type === "usage" || type === "branch_summary" || type === "compaction") add(usage);
    if (type !== "message" || !isRecord(message)) continue;
    const { role, content } = message;
    counts.totalMessages += 1;
    if (role === "user") counts.userMessages += 1;
    if (role === "toolResult") counts.toolResults += 1;
    if (role === "assistant") {
      counts.assistantMessages += 1;
      const blocks = Array.isArray(content) ? content.filter(isRecord) : [];
      counts.toolCalls += blocks.filter((block) => block["type"] === "toolCall").length;
    }
    if (role === "toolResult" || role === "assistant") add(message["usage"]);
  }
  return { ...counts, tokens, cost };
}

/** The session's name in the file, if it has one. */
export function nameIn({ entries }: StoredEntries): string | undefined {
  const name = entries.findLast(({ type }) => type === "session_info")?.["name"];
  return (typeof name === "string" && name.trim()) || undefined;
}

function branchOf({ entries, leafId }: StoredEntries): readonly StoredEntry[] {
  const byId = new Map(entries.map((entry) => [entry["id"], entry]));
  const path: StoredEntry[] = [];
  // A file with a cycle of parents was refused when it was read.
  for (let entry = byId.get(leafId); entry !== undefined; entry = byId.get(entry["parentId"])) path.push(entry);
  return path.reverse();
}

function keptBy(path: readonly StoredEntry[], compaction: number): readonly StoredEntry[] {
  const firstKept = path[compaction]?.["firstKeptEntryId"];
  const first = path.slice(0, compaction).findIndex(({ id }) => id === firstKept);
  if (first === -1) return [];
  return path.slice(first, compaction).filter((entry) => !isSystemMessage(entry));
}

function isSystemMessage({ type, message }: StoredEntry): boolean {
  return type === "message" && isRecord(message) && message["role"] === "system";
}

/** An entry as messages in pi's format. */
function messagesOf(entry: StoredEntry): readonly Message[] {
  const { type, message, summary, tokensBefore, fromId, customType, content, display, details, systemMessage } = entry;
  const timestamp = new Date(String(entry["timestamp"])).getTime();
  switch (type) {
    case "message":
      return isRecord(message) ? [withContent(message)] : [];
    case "custom_message":
      return [{ role: "custom", customType, content: content ?? [], display, details, timestamp }];
    case "branch_summary":
      return summary ? [{ role: "branchSummary", summary, fromId, timestamp }] : [];
    case "compaction": {
      const summed = { role: "compactionSummary", summary, tokensBefore, timestamp };
      return isRecord(systemMessage) ? [systemMessage, summed] : [summed];
    }
    default:
      return [];
  }
}

function withContent(message: Message): Message {
  if (message["content"] !== undefined && message["content"] !== null) return message;
  if (message["role"] === "system") return { ...message, content: "" };
  return contentRoles.has(message["role"]) ? { ...message, content: [] } : message;
}

const contentRoles: ReadonlySet<unknown> = new Set(["user", "assistant", "toolResult"]);

function edited(message: Message, content: unknown): Message {
  const { role } = message;
  if (role !== "custom" && !contentRoles.has(role)) return message;
  const asBlocks = (role === "assistant" || role === "toolResult") && typeof content === "string";
  return { ...message, content: asBlocks ? [{ type: "text", text: content }] : content };
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  const blocks = Array.isArray(content) ? content.filter(isRecord) : [];
  return blocks.map(({ type, text }) => (type === "text" && typeof text === "string" ? text : "")).join("");
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

/** The current labels, as pi reads them: the newest for each entry; an empty one removes the label. */
export function labelsIn(entries: unknown): EntryLabel[] {
  const labels = new Map<string, EntryLabel>();
  for (const entry of Array.isArray(entries) ? entries : []) {
    if (!isRecord(entry) || entry["type"] !== "label" || typeof entry["targetId"] !== "string") continue;
    const { targetId: entryId, label, timestamp: at } = entry;
    labels.delete(entryId);
    if (typeof label !== "string" || label === "") continue;
    labels.set(entryId, { entryId, label, ...(typeof at === "string" ? { at } : {}) });
  }
  return [...labels.values()];
}
