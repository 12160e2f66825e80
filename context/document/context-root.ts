import type { BuiltMessage, Meta } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";
import { CONTEXT_EVENT_TYPE, type ContextItem, type ContextSource } from "./document.ts";
import { type NativeEvent, nativeEventOf } from "./native-event.ts";

/** Data of the root entry of a session file that was written from a context. */
export interface ContextRoot {
  readonly version: 1;
  /** Hash of the messages and instructions as given. */
  readonly hash: string;
  readonly source?: ContextSource;
  /** Last node of the conversation in the document. */
  readonly nodeId?: string;
  /** Text of the prompt's section of prior instructions. */
  readonly instructions?: string;
  /** The `system` items, which have no entries. */
  readonly system?: readonly SystemExtra[];
  /** By entry id. */
  readonly entries: Readonly<Record<string, EntryExtra>>;
}

export interface SystemExtra {
  /** Id of the following entry; `null`: after all entries. */
  readonly before: string | null;
  readonly item: ContextItem;
}

/** Difference between an entry's original item and the item that an export makes from the entry. */
export interface EntryExtra {
  /** Override the entry's fields; fields of `meta` are merged with the entry's. */
  readonly fields?: ItemFields;
  /** Fields of the entry that the item did not have. */
  readonly absent?: readonly (keyof ContextItem)[];
}

export type ItemFields = Partial<Omit<ContextItem, "role" | "content" | "toolCalls" | "blocks">>;

/** Fields allowed in {@link EntryExtra.fields}, with their checks. */
const fieldChecks: { readonly [Field in keyof Required<ItemFields>]: (value: unknown) => boolean } = {
  nodeId: isString,
  timestamp: (value) => typeof value === "number" && Number.isFinite(value),
  toolCallId: isString,
  toolName: isString,
  isError: (value) => typeof value === "boolean",
  eventType: isString,
  meta: isRecord,
  model: (value) => isRecord(value) && isString(value["api"]) && isString(value["provider"]) && isString(value["id"]),
  stopReason: isString,
  usage: isRecord,
  details: (value) => value !== undefined,
};

const fieldNames = Object.keys(fieldChecks) as readonly (keyof ItemFields)[];

/** Fields that an export always sets, by message role. */
const optionalOfRole: Readonly<Record<BuiltMessage["role"], readonly (keyof ContextItem)[]>> = {
  user: [],
  assistant: ["model", "usage", "stopReason", "blocks"],
  toolResult: ["toolName", "isError"],
  custom: ["eventType", "meta"],
  compactionSummary: [],
  branchSummary: [],
  bashExecution: [],
};

/** An export names a node after its entry. */
const nodeName: keyof ContextItem = "nodeId";

/**
 * Returns what an item loses when its message becomes an entry; `undefined`: nothing. `isOwnEntry`: a summary becomes
 * an entry of its own type with all fields, instead of a message.
 */
export function entryExtra(item: ContextItem, message: BuiltMessage, isOwnEntry: boolean): EntryExtra | undefined {
  const fields = Object.fromEntries(
    fieldNames.flatMap((name) => {
      const value = name === "meta" ? lostMeta(item, isOwnEntry) : item[name];
      return value === undefined || isKept(name, item, message) ? [] : [[name, value]];
    }),
  ) as ItemFields;
  const absent = [...optionalOfRole[message.role], nodeName].filter((name) => item[name] === undefined);
  if (absent.length === 0 && Object.keys(fields).length === 0) return undefined;
  return { ...(Object.keys(fields).length === 0 ? {} : { fields }), ...(absent.length === 0 ? {} : { absent }) };
}

/** Returns `meta` without the fields that the entry restores. */
function lostMeta(item: ContextItem, isOwnEntry: boolean): Meta | undefined {
  const native = nativeEventOf(item);
  if (item.meta === undefined || native === undefined) return item.meta;
  const { native: given, ...rest } = item.meta;
  if (!isSame(given as Meta, restoredNative(native, isOwnEntry))) return item.meta;
  return Object.keys(rest).length === 0 ? undefined : rest;
}

/** Returns what an export makes from the entry. */
function restoredNative(native: NativeEvent, isOwnEntry: boolean): Meta {
  const isSummary = native.type === "compaction" || native.type === "branch_summary";
  if (isSummary && !isOwnEntry) {
    const { details: _, fromHook: __, ...restored } = native;
    return restored;
  }
  if (native.type !== "bashExecution" || native.excludeFromContext === true) return native;
  const { excludeFromContext: _, ...restored } = native;
  return restored;
}

/** Whether two objects have identical values. */
function isSame(one: Meta, other: Meta): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(other).length && names.every((name) => Object.is(one[name], other[name]));
}

function isKept(name: keyof ItemFields, item: ContextItem, message: BuiltMessage): boolean {
  switch (message.role) {
    case "assistant":
      return (
        name === "timestamp" || name === "model" || (name === "stopReason" && item.stopReason === message.stopReason)
      );
    case "toolResult":
      return (
        name === "timestamp" || name === "toolCallId" || name === "toolName" || name === "isError" || name === "details"
      );
    case "custom":
      if (name === "meta") return message.customType === CONTEXT_EVENT_TYPE;
      return name === "eventType" || (name === "timestamp" && isWholeTime(item.timestamp));
    case "compactionSummary":
    case "branchSummary":
      // Their time is only in the entry, and may have been moved.
      return name === "eventType";
    case "bashExecution":
      return name === "eventType" || name === "timestamp";
    default:
      return name === "timestamp";
  }
}

/** Whether the time survives conversion to a date text and back. */
function isWholeTime(timestamp: number): boolean {
  return Number.isInteger(timestamp) && Math.abs(timestamp) <= 8.64e15;
}

/** Reads the untrusted `data` of a root entry. Returns `undefined` if it is not one; drops invalid fields. */
export function readContextRoot(data: unknown): ContextRoot | undefined {
  if (!isRecord(data) || data["version"] !== 1) return undefined;
  const { hash, source, nodeId, instructions, system, entries } = data;
  if (!isString(hash) || !/^[0-9a-f]{64}$/.test(hash)) return undefined;
  const read = isRecord(entries) ? Object.entries(entries) : [];
  return {
    version: 1,
    hash,
    ...(isRecord(source) && isString(source["kind"]) ? { source: source as ContextSource } : {}),
    ...(isString(nodeId) ? { nodeId } : {}),
    ...(isString(instructions) && instructions !== "" ? { instructions } : {}),
    ...(Array.isArray(system) ? { system: system.flatMap(readSystem) } : {}),
    entries: Object.fromEntries(read.flatMap(([id, extra]) => (isRecord(extra) ? [[id, readExtra(extra)]] : []))),
  };
}

function readExtra({ fields, absent }: Meta): EntryExtra {
  return {
    ...(isRecord(fields) ? { fields: readFields(fields) } : {}),
    ...(Array.isArray(absent) ? { absent: absent.filter((name) => absentNames.has(name)) } : {}),
  };
}

const absentNames: ReadonlySet<unknown> = new Set([...Object.values(optionalOfRole).flat(), nodeName]);

function readFields(fields: Meta): ItemFields {
  const sound = fieldNames.filter((name) => Object.hasOwn(fields, name) && fieldChecks[name](fields[name]));
  return Object.fromEntries(sound.map((name) => [name, fields[name]])) as ItemFields;
}

function readSystem(value: unknown): readonly SystemExtra[] {
  if (!isRecord(value) || !isRecord(value["item"])) return [];
  const { before, item } = value as { readonly before: unknown; readonly item: Meta };
  if (before !== null && !isString(before)) return [];
  const { content } = item;
  if (!Array.isArray(content)) return [];
  const texts = content.flatMap((part) =>
    isRecord(part) && part["type"] === "text" && isString(part["text"])
      ? [{ type: "text" as const, text: part["text"] }]
      : [],
  );
  const fields = readFields(item);
  return [{ before, item: { timestamp: 0, ...fields, role: "system", content: texts } }];
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}
