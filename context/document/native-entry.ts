import { CARRIER_TYPE, DELIVERY_MARK } from "../../protocol/link.ts";
import type { Meta } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";
import { CONTEXT_EVENT_TYPE, type ContextItem } from "./document.ts";
import type { NoteExport } from "./export-notes.ts";
import type { Loose } from "./measure.ts";
import { assistantContent, type ContentOptions, partsOf } from "./native-content.ts";
import { nativeEventTypes } from "./native-event.ts";
import { systemText } from "./native-system.ts";
import { keptData, keptObject, MAX_EDIT_BLOCK_DEPTH, MAX_FIELD_DEPTH } from "./native-values.ts";
import { type SessionEntry, timeOf } from "./session-tree.ts";
import { hasSignedItems, type UnsignedCalls } from "./signed-items.ts";

export interface ConvertOptions extends ContentOptions {
  readonly includeSystem: boolean;
  /** Whether to include the imported system items. */
  readonly includeInstructions: boolean;
}

/** Options and helpers to convert an entry to an item. */
export interface Conversion {
  readonly options: ConvertOptions;
  readonly note: NoteExport;
  /** Returns the node id of another entry, for references; `undefined` if it has none. */
  readonly nodeIdOf: (entryId: string) => string | undefined;
  /** New ids of calls whose reasoning is left out. */
  readonly calls: UnsignedCalls;
  /** Where the kept part of a compaction starts, as fields of its `meta.native`. */
  readonly keptFrom: (entry: SessionEntry) => Meta;
}

/** Prefix of event types for entries that the model does not see; the entry's type follows. */
export const STATE_EVENT_PREFIX = "pi.entry:";

/** Whether an entry only starts a run, and is never exported. */
export function isCarrier({ type, raw }: SessionEntry): boolean {
  const message = type === "message" ? raw["message"] : raw;
  return (
    isRecord(message) && message["customType"] === CARRIER_TYPE && (type === "custom_message" || type === "message")
  );
}

export function isSystem({ type, raw }: SessionEntry): boolean {
  return type === "message" && isRecord(raw["message"]) && raw["message"]["role"] === "system";
}

/** Converts an entry to an item. `meta.native` holds data without a field in the format. */
export function convertEntry(entry: SessionEntry, conversion: Conversion): ContextItem {
  const { raw, timestamp } = entry;
  switch (entry.type) {
    case "message":
      return isRecord(raw["message"])
        ? convertMessage(entry, raw["message"], conversion)
        : stateEvent(entry, conversion);
    case "compaction":
      return convertCompaction(entry, conversion);
    case "branch_summary":
      return isText(raw["summary"]) ? branchSummary(raw, timestamp, conversion) : stateEvent(entry, conversion);
    case "custom_message":
      return customMessage(raw, timestamp, conversion);
    default:
      return stateEvent(entry, conversion);
  }
}

function convertMessage(entry: SessionEntry, message: Loose, conversion: Conversion): ContextItem {
  const timestamp = timeOf(message["timestamp"]) ?? entry.timestamp;
  const { options, note } = conversion;
  switch (message["role"]) {
    case "system":
      return { role: "system", content: textParts(systemText(message)), timestamp };
    case "user":
      return { role: "user", content: partsOf(message["content"], options, note), timestamp };
    case "assistant":
      return convertAssistant(message, timestamp, conversion);
    case "toolResult":
      return convertResult(message, timestamp, conversion);
    case "bashExecution":
      return bashEvent(message, timestamp);
    case "custom":
    case "hookMessage":
      return customMessage(message, timestamp, conversion);
    case "branchSummary":
      return branchSummary(message, timestamp, conversion);
    case "compactionSummary":
      return event(
        nativeEventTypes.compaction,
        textParts(message["summary"]),
        timestamp,
        compactionFields(message, conversion),
      );
    default:
      return stateEvent(entry, conversion);
  }
}

function convertAssistant(message: Loose, timestamp: number, { options, note, calls }: Conversion): ContextItem {
  const { api, provider, model, stopReason } = message;
  const usage = keptObject(message["usage"], note, MAX_FIELD_DEPTH);
  const isNamed = typeof api === "string" && typeof provider === "string" && typeof model === "string";
  return {
    role: "assistant",
    ...assistantContent(message["content"], options, note, hasSignedItems(api) ? calls : undefined),
    timestamp,
    ...(isNamed ? { model: { api, provider, id: model } } : {}),
    ...(typeof stopReason === "string" ? { stopReason } : {}),
    ...(usage === undefined ? {} : { usage }),
    meta: { native: { type: "message", ...rest(message, assistantFields, note) } },
  };
}

const assistantFields = ["role", "content", "api", "provider", "model", "usage", "stopReason", "timestamp"];

function convertResult(message: Loose, timestamp: number, { options, note, calls }: Conversion): ContextItem {
  const { toolCallId, toolName, isError } = message;
  const usage = keptObject(message["usage"], note, MAX_FIELD_DEPTH);
  const details = keptData(message["details"], note, MAX_FIELD_DEPTH);
  return {
    role: "toolResult",
    content: partsOf(message["content"], options, note),
    timestamp,
    ...(typeof toolCallId === "string" ? { toolCallId: calls.idOf(toolCallId) } : {}),
    ...(typeof toolName === "string" ? { toolName } : {}),
    isError: isError === true,
    ...(details === undefined ? {} : { details }),
    ...(usage === undefined ? {} : { usage }),
    meta: { native: { type: "message", ...rest(message, resultFields, note) } },
  };
}

const resultFields = ["role", "content", "toolCallId", "toolName", "isError", "details", "usage", "timestamp"];

function bashEvent(message: Loose, timestamp: number): ContextItem {
  const { command, output, exitCode, cancelled, truncated, fullOutputPath, excludeFromContext } = message;
  const native = {
    type: "bashExecution",
    command: isText(command) ? command : "",
    ...(typeof exitCode === "number" ? { exitCode } : {}),
    cancelled: cancelled === true,
    truncated: truncated === true,
    ...(isText(fullOutputPath) ? { fullOutputPath } : {}),
    ...(excludeFromContext === true ? { excludeFromContext } : {}),
  };
  return event(nativeEventTypes.bashExecution, textParts(output), timestamp, native);
}

function convertCompaction(entry: SessionEntry, conversion: Conversion): ContextItem {
  const native = { ...compactionFields(entry.raw, conversion), ...conversion.keptFrom(entry) };
  return event(nativeEventTypes.compaction, textParts(entry.raw["summary"]), entry.timestamp, native);
}

function compactionFields(raw: Loose, conversion: Conversion): Meta {
  const { tokensBefore } = raw;
  const isCount = typeof tokensBefore === "number" && Number.isFinite(tokensBefore) && tokensBefore >= 0;
  return { type: "compaction", tokensBefore: isCount ? tokensBefore : 0, ...summaryFields(raw, conversion) };
}

function branchSummary(raw: Loose, timestamp: number, conversion: Conversion): ContextItem {
  const { summary, fromId } = raw;
  const from = typeof fromId === "string" ? (conversion.nodeIdOf(fromId) ?? fromId) : "root";
  const native = { type: "branch_summary", fromId: from, ...summaryFields(raw, conversion) };
  return event(nativeEventTypes.branch_summary, textParts(summary), timestamp, native);
}

function summaryFields({ details, fromHook }: Loose, { note }: Conversion): Meta {
  const sound = keptData(details, note);
  return {
    ...(sound === undefined ? {} : { details: sound }),
    ...(typeof fromHook === "boolean" ? { fromHook } : {}),
  };
}

/** Restores an event of a document. A push loses its delivery mark, which belongs to this session. */
function customMessage(raw: Loose, timestamp: number, { options, note }: Conversion): ContextItem {
  const { customType, display } = raw;
  const content = partsOf(raw["content"], options, note);
  const { [DELIVERY_MARK]: mark, ...unmarked } = isRecord(raw["details"]) ? raw["details"] : {};
  if (mark !== undefined) note("delivery_mark");
  const given = mark === undefined ? raw["details"] : Object.keys(unmarked).length > 0 ? unmarked : undefined;
  if (customType === CONTEXT_EVENT_TYPE && isRecord(given)) {
    // Its own `meta` is one level deeper.
    const fields = keptObject(given, note, MAX_FIELD_DEPTH + 1);
    if (fields !== undefined) return documentEvent(content, fields, timestamp);
  }
  const details = keptData(given, note);
  const type = isText(customType) ? customType : "unnamed";
  const native = {
    type: "custom_message",
    customType: type,
    display: display === true,
    ...(details === undefined ? {} : { details }),
  };
  return event(`${nativeEventTypes.custom_message}${type}`, content, timestamp, native);
}

function documentEvent(content: ContextItem["content"], { eventType, meta }: Loose, timestamp: number): ContextItem {
  const [first, ...others] = content;
  const text = first?.type === "text" ? first.text : "";
  const end = text.indexOf("\n");
  const left = end === -1 ? "" : text.slice(end + 1);
  return {
    role: "event",
    content: text.startsWith("Event: ")
      ? [...(end === -1 ? [] : [{ type: "text" as const, text: left }]), ...others]
      : content,
    timestamp,
    ...(typeof eventType === "string" ? { eventType } : {}),
    ...(isRecord(meta) ? { meta } : {}),
  };
}

/**
 * Converts an entry that the model does not see: all its fields go to `meta.native`, and references to entries become
 * references to nodes.
 */
function stateEvent(entry: SessionEntry, { options, note, nodeIdOf }: Conversion): ContextItem {
  const native = { type: entry.type, ...rest(entry.raw, ["type", "id", "parentId", "timestamp"], note) };
  const { targetId } = entry.raw;
  const target = typeof targetId === "string" ? { targetId: nodeIdOf(targetId) ?? targetId } : {};
  const replacement = entry.type === "context_edit" ? replacementOf(entry.raw, options, note) : {};
  return event(`${STATE_EVENT_PREFIX}${entry.type}`, [], entry.timestamp, { ...native, ...target, ...replacement });
}

/** Returns the replacement of an edit, without excluded content. */
function replacementOf({ replacement }: Loose, options: ContentOptions, note: NoteExport): Meta {
  if (!isRecord(replacement)) return { replacement: null };
  const { content } = replacement;
  if (!Array.isArray(content)) return { replacement: { content: isText(content) ? content : [] } };
  const wanted = content.flatMap((block): readonly unknown[] => {
    const sound = keptObject(block, note, MAX_EDIT_BLOCK_DEPTH);
    if (sound === undefined) return [];
    if (sound["type"] === "thinking") return options.includeReasoning ? [sound] : [];
    return sound["type"] === "image" ? partsOf([sound], options, note) : [sound];
  });
  return { replacement: { content: wanted } };
}

function event(eventType: string, content: ContextItem["content"], timestamp: number, native: Meta): ContextItem {
  return { role: "event", eventType, content, timestamp, meta: { native } };
}

/** Returns the valid fields other than the named ones. */
function rest(raw: Loose, named: readonly string[], note: NoteExport): Meta {
  const fields = Object.entries(raw).flatMap(([field, value]) => {
    if (named.includes(field) || field === "__proto__" || field === "type") return [];
    const sound = keptData(value, note);
    return sound === undefined ? [] : [[field, sound] as const];
  });
  return Object.fromEntries(fields);
}

function textParts(text: unknown): ContextItem["content"] {
  return isText(text) ? [{ type: "text", text }] : [];
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value !== "";
}
