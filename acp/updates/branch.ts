import { isRecord } from "../../protocol/objects.ts";
import type { PiMessage } from "./messages.ts";

/** An entry of pi's session file (docs/session-format.md of pi). Its content is unchecked. */
export type PiEntry = Readonly<Record<string, unknown>>;

export function messageOf({ type, message }: PiEntry): PiMessage | undefined {
  return type === "message" && isRecord(message) ? message : undefined;
}

/** A tool call of an assistant's message. */
export interface ToolCallBlock {
  readonly id: string;
  readonly name: string;
  readonly args: unknown;
}

/** Undefined: the block is not a tool call. */
export function toolCallIn(block: unknown): ToolCallBlock | undefined {
  if (!isRecord(block) || block["type"] !== "toolCall" || typeof block["id"] !== "string") return undefined;
  const { id, name, arguments: args } = block;
  return { id, name: typeof name === "string" ? name : "", args };
}

/** The tool calls of a message. An id counts once. */
export function toolCallsOf({ role, content }: PiMessage): readonly ToolCallBlock[] {
  if (role !== "assistant" || !Array.isArray(content)) return [];
  const byId = new Map<string, ToolCallBlock>();
  for (const block of content) {
    const call = toolCallIn(block);
    if (call !== undefined && !byId.has(call.id)) byId.set(call.id, call);
  }
  return Array.from(byId.values());
}
