import { isRecord } from "../../protocol/objects.ts";
import type { PiMessage } from "./messages.ts";

/** An entry of pi's session file (docs/session-format.md of pi). Its content is unchecked. */
export type PiEntry = Readonly<Record<string, unknown>>;

/** The entries from the root to the leaf. */
export function branchTo(entries: readonly PiEntry[], leafId: string | null): readonly PiEntry[] {
  const byId = new Map(entries.map((entry) => [entry["id"], entry]));
  const path: PiEntry[] = [];
  let entry = byId.get(leafId);
  while (entry !== undefined) {
    path.push(entry);
    // An entry is on the path once, also if a damaged file has a cycle.
    byId.delete(entry["id"]);
    entry = byId.get(entry["parentId"]);
  }
  return path.reverse();
}

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

/** The results of the branch's tool calls, by the message that called and pi's id of the call. */
export function resultsOf(branch: readonly PiEntry[]): ReadonlyMap<PiMessage, ReadonlyMap<string, PiMessage>> {
  const results = new Map<PiMessage, Map<string, PiMessage>>();
  const callers = new Map<string, PiMessage>();
  for (const entry of branch) {
    const message = messageOf(entry);
    if (message === undefined) continue;
    for (const { id } of toolCallsOf(message)) callers.set(id, message);
    const { role, toolCallId } = message;
    if (role !== "toolResult" || typeof toolCallId !== "string") continue;
    const caller = callers.get(toolCallId);
    callers.delete(toolCallId);
    if (caller === undefined) continue;
    const known = results.get(caller);
    if (known === undefined) results.set(caller, new Map([[toolCallId, message]]));
    else known.set(toolCallId, message);
  }
  return results;
}
