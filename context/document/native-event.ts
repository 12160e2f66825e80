import { CARRIER_TYPE } from "../../protocol/link.ts";
import type { Meta, TextPart } from "../../protocol/link-context.ts";
import { defined, isRecord } from "../../protocol/objects.ts";
import { CONTEXT_EVENT_TYPE, type ContextItem } from "./document.ts";

/**
 * pi's own message that an event represents, from `meta.native` of an export. The text is the event's content. Other
 * events are ordinary.
 */
export type NativeEvent =
  | {
      readonly type: "compaction";
      readonly tokensBefore: number;
      readonly details?: unknown;
      readonly fromHook?: boolean;
    }
  | {
      readonly type: "branch_summary";
      readonly fromId: string;
      readonly details?: unknown;
      readonly fromHook?: boolean;
    }
  | {
      readonly type: "bashExecution";
      readonly command: string;
      readonly exitCode?: number;
      readonly cancelled: boolean;
      readonly truncated: boolean;
      readonly fullOutputPath?: string;
      readonly excludeFromContext?: boolean;
    }
  | {
      readonly type: "custom_message";
      readonly customType: string;
      readonly display: boolean;
      readonly details?: unknown;
    };

/** Event types of pi's own entries in an export; the last is followed by the message's own type. */
export const nativeEventTypes = {
  compaction: "pi.compaction",
  branch_summary: "pi.branchSummary",
  bashExecution: "pi.bash",
  custom_message: "pi.custom:",
} as const;

/** A document must not contain carriers, which control the helper; events have their own form. */
const ownTypes: ReadonlySet<string> = new Set([CARRIER_TYPE, CONTEXT_EVENT_TYPE]);

/** Returns pi's own message for an event; `undefined` for an ordinary event or an invalid `meta.native`. */
export function nativeEventOf(item: ContextItem): NativeEvent | undefined {
  const native = item.meta?.["native"];
  if (item.role !== "event" || !isRecord(native)) return undefined;
  switch (item.eventType) {
    case nativeEventTypes.compaction:
      return compaction(item, native);
    case nativeEventTypes.branch_summary:
      return branchSummary(item, native);
    case nativeEventTypes.bashExecution:
      return bashExecution(item, native);
    default:
      return customMessage(item, native);
  }
}

/** Whether an event is a summary of a part of the conversation. */
export function isSummary(item: ContextItem): boolean {
  const type = nativeEventOf(item)?.type;
  return type === "compaction" || type === "branch_summary";
}

/** Joins the item's texts; `undefined` if it has other content. */
export function plainText(item: ContextItem): string | undefined {
  if (item.content.some(({ type }) => type !== "text")) return undefined;
  return item.content.map((part) => (part as TextPart).text).join("");
}

function compaction(item: ContextItem, { type, tokensBefore, details, fromHook }: Meta): NativeEvent | undefined {
  if (type !== "compaction" || !isCount(tokensBefore) || !plainText(item)) return undefined;
  return { type, tokensBefore, ...defined({ details }), ...flag({ fromHook }) };
}

function branchSummary(item: ContextItem, { type, fromId, details, fromHook }: Meta): NativeEvent | undefined {
  if (type !== "branch_summary" || typeof fromId !== "string" || !plainText(item)) return undefined;
  return { type, fromId, ...defined({ details }), ...flag({ fromHook }) };
}

function bashExecution(item: ContextItem, native: Meta): NativeEvent | undefined {
  const { type, command, exitCode, cancelled, truncated, fullOutputPath, excludeFromContext } = native;
  const isSound =
    type === "bashExecution" &&
    typeof command === "string" &&
    (exitCode === undefined || exitCode === null || typeof exitCode === "number") &&
    plainText(item) !== undefined;
  if (!isSound) return undefined;
  return {
    type,
    command,
    ...(typeof exitCode === "number" ? { exitCode } : {}),
    cancelled: cancelled === true,
    truncated: truncated === true,
    ...(typeof fullOutputPath === "string" ? { fullOutputPath } : {}),
    ...flag({ excludeFromContext }),
  };
}

function customMessage(item: ContextItem, { type, customType, display, details }: Meta): NativeEvent | undefined {
  const isSound =
    type === "custom_message" &&
    typeof customType === "string" &&
    item.eventType === `${nativeEventTypes.custom_message}${customType}` &&
    !ownTypes.has(customType) &&
    item.content.some((part) => part.type === "image" || (part.type === "text" && part.text !== ""));
  return isSound ? { type, customType, display: display !== false, ...defined({ details }) } : undefined;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
}

function flag(fields: Meta): Readonly<Record<string, boolean>> {
  const [name, value] = Object.entries(fields)[0] ?? ["", undefined];
  return typeof value === "boolean" ? { [name]: value } : {};
}
