// What pi writes: messages, entries and events. Models, tools and extensions make parts of them, so nothing is trusted.

export type PiValue = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is PiValue {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A text, or an empty one for anything else. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** The blocks of a message's content; a text is one block. */
export function contentBlocks(content: unknown): readonly unknown[] {
  if (typeof content === "string") return [{ type: "text", text: content }];
  return Array.isArray(content) ? content : [];
}

/** The same message in an event and in the session's file has the same key. */
export function messageKey({ role, timestamp, toolCallId }: PiValue): string {
  const call = typeof toolCallId === "string" ? `-${toolCallId}` : "";
  return `${textOf(role)}-${numberOf(timestamp) ?? "?"}${call}`;
}

/** One line of at most `maxChars` UTF-16 units. */
export function oneLine(text: string, maxChars: number): string {
  const line = text
    .slice(0, maxChars * 2)
    .replace(/\s+/g, " ")
    .trim();
  return line.length <= maxChars ? line : `${line.slice(0, maxChars - 1)}…`;
}

/** JSON for people. Values come from JSON, so they have no cycles. */
export function jsonText(value: unknown): string {
  return JSON.stringify(value, undefined, 2) ?? "";
}

/** The end of a text, not within a pair. */
export function endOf(text: string, maxChars: number): string {
  return text.length <= maxChars ? text : `…${text.slice(-maxChars).replace(/^[\udc00-\udfff]/, "")}`;
}
