import type { Meta } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { ContextItem } from "./document.ts";
import type { ExportNote, NoteExport } from "./export-notes.ts";
import { assistantContent, type ContentOptions, partsOf } from "./native-content.ts";
import { STATE_EVENT_PREFIX } from "./native-entry.ts";
import { nativeEventTypes } from "./native-event.ts";
import { nativeOf } from "./native-mark.ts";

/** Text that pi uses for a missing result. */
const noResult = "No result provided";

export interface ProjectionOptions {
  readonly note?: NoteExport;
  /** Whether an assistant's item is pi's own. Default: if an export with the view `full` has marked it. */
  readonly isNative?: (item: ContextItem) => boolean;
  /** Whether an item belongs to a history that pi never had, which compactions cannot hide. Default: none. */
  readonly isHeld?: (item: ContextItem) => boolean;
}

/**
 * Returns what the model would see of a path through a pi session: the newest compaction, the entries that it kept, and
 * later entries. Edits are applied, hidden entries and failed answers are left out, and calls without a result are
 * answered as pi does. A path without pi's own entries is unchanged.
 */
export function projectItems(
  path: readonly ContextItem[],
  { note = () => {}, isNative = isMarked, isHeld = () => false }: ProjectionOptions = {},
): readonly ContextItem[] {
  const shown = shownItems(path, note, isHeld);
  const edits = editsOf(shown);
  const failed = new Set<string>();
  const visible = shown.flatMap((item) => {
    const isFailed = item.role === "assistant" && isNative(item) && failures.has(item.stopReason ?? "");
    const why = isHidden(item) ? "not_for_model" : isFailed ? "failed_answer" : orphaned(item, failed);
    if (why === undefined) return edited(item, edits, note);
    if (isFailed) for (const { id } of item.toolCalls ?? []) failed.add(id);
    note(why);
    return [];
  });
  return withAnswers(visible, note, isNative).map(withoutMark);
}

/** Stop reasons of answers that pi does not send again. */
const failures: ReadonlySet<string> = new Set(["error", "aborted"]);

/** Returns the items that no compaction hides: the newest compaction, the items that it kept, and later items. */
function shownItems(
  path: readonly ContextItem[],
  note: NoteExport,
  isHeld: (item: ContextItem) => boolean,
): readonly ContextItem[] {
  const newest = path.findLastIndex(isCompaction);
  const compaction = path[newest];
  if (compaction === undefined) return path;
  const start = firstKept(path.slice(0, newest), nativeOf(compaction) ?? {});
  const system: ContextItem[] = [];
  const held: ContextItem[] = [];
  const kept: ContextItem[] = [];
  for (const [index, item] of path.slice(0, newest).entries()) {
    // Content of a system message is in the prompt in any case.
    if (item.role === "system") system.push(item);
    else if (isHeld(item)) held.push(item);
    else if (index >= start && !isCompaction(item)) kept.push(item);
    else note("compacted");
  }
  return [...system, ...held, compaction, ...kept, ...path.slice(newest + 1)];
}

function firstKept(before: readonly ContextItem[], { firstKeptNodeId, keptBehindNodeId }: Meta): number {
  if (keptBehindNodeId === null) return 0;
  const named = firstKeptNodeId ?? keptBehindNodeId;
  const index = typeof named === "string" ? before.findIndex(({ nodeId }) => nodeId === named) : -1;
  if (index === -1) return before.length;
  return firstKeptNodeId === undefined ? index + 1 : index;
}

/** The last edit of each target. */
function editsOf(items: readonly ContextItem[]): ReadonlyMap<string, unknown> {
  const edits = new Map<string, unknown>();
  for (const item of items) {
    const { targetId, replacement } =
      item.eventType === `${STATE_EVENT_PREFIX}context_edit` ? (nativeOf(item) ?? {}) : {};
    if (typeof targetId === "string") edits.set(targetId, replacement);
  }
  return edits;
}

/** Whether the model does not see an item: an entry of another kind, or a command excluded from the context. */
function isHidden(item: ContextItem): boolean {
  const { role, eventType } = item;
  if (role !== "event") return false;
  const native = nativeOf(item);
  if (eventType === nativeEventTypes.bashExecution) return native?.["excludeFromContext"] === true;
  return eventType?.startsWith(STATE_EVENT_PREFIX) === true && native !== undefined;
}

/** Whether the answer of a result is left out. pi would send the result, and every service would refuse it. */
function orphaned({ role, toolCalls = [], toolCallId }: ContextItem, failed: Set<string>): ExportNote | undefined {
  for (const { id } of toolCalls) failed.delete(id);
  return role === "toolResult" && failed.has(toolCallId ?? "") ? "orphan_result" : undefined;
}

const everything: ContentOptions = { includeImages: true, includeReasoning: true };

function edited(item: ContextItem, edits: ReadonlyMap<string, unknown>, note: NoteExport): readonly ContextItem[] {
  if (item.nodeId === undefined || !edits.has(item.nodeId)) return [item];
  const replacement = edits.get(item.nodeId);
  if (!isRecord(replacement)) {
    note("edited_out");
    return [];
  }
  if (item.role === "system" || (item.role === "event" && !item.eventType?.startsWith(nativeEventTypes.custom_message)))
    return [item];
  note("edited");
  const { content } = replacement;
  if (item.role !== "assistant") return [{ ...item, content: partsOf(content, everything, note) }];
  const { toolCalls: _, blocks: __, ...others } = item;
  return [{ ...others, ...assistantContent(content, everything, note) }];
}

/**
 * Adds results, as pi does, for calls of pi's own messages without one before the next answer or user message, and
 * removes results whose answer was left out.
 */
function withAnswers(
  items: readonly ContextItem[],
  note: NoteExport,
  isNative: (item: ContextItem) => boolean,
): readonly ContextItem[] {
  const answered: ContextItem[] = [];
  let open = new Map<string, ContextItem>();
  const close = (): void => {
    answered.push(...open.values());
    for (let count = open.size; count > 0; count--) note("missing_result");
    open = new Map();
  };
  for (const item of items) {
    if (item.role === "toolResult") open.delete(item.toolCallId ?? "");
    else if (item.role !== "system") close();
    answered.push(item);
    if (item.role === "assistant" && isNative(item)) open = missingResults(item);
  }
  close();
  return answered;
}

function missingResults({ toolCalls = [], timestamp }: ContextItem): Map<string, ContextItem> {
  return new Map(
    toolCalls.map(({ id, name }) => [
      id,
      {
        role: "toolResult",
        toolCallId: id,
        toolName: name,
        content: [{ type: "text", text: noResult }],
        isError: true,
        timestamp,
      },
    ]),
  );
}

/** Whether an item is a compaction that states what it kept; other compactions are ordinary events. */
function isCompaction(item: ContextItem): boolean {
  if (item.role !== "event" || item.eventType !== nativeEventTypes.compaction) return false;
  const { type, firstKeptNodeId, keptBehindNodeId } = nativeOf(item) ?? {};
  return type === "compaction" && (firstKeptNodeId !== undefined || keptBehindNodeId !== undefined);
}

function isMarked(item: ContextItem): boolean {
  return item.role === "assistant" && nativeOf(item)?.["type"] === "message";
}

/** Removes pi's additional data and references to other entries. */
function withoutMark(item: ContextItem): ContextItem {
  const native = nativeOf(item) ?? {};
  if (item.role === "event" ? !isCompaction(item) : native["type"] !== "message") return item;
  const { native: _, ...others } = item.meta ?? {};
  if (item.role === "event") {
    const { firstKeptNodeId: __, keptBehindNodeId: ___, ...left } = native;
    return { ...item, meta: { ...others, native: left } };
  }
  const { meta: __, ...bare } = item;
  return Object.keys(others).length > 0 ? { ...bare, meta: others } : bare;
}
