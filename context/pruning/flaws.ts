import type { AgentMessage } from "../../extension/pi-types.ts";
import { isRecord } from "../../protocol/objects.ts";

/** Reasons why services refuse a list of messages; each reads after the word "has". */
export type Flaw = "a result without its call" | "an empty answer" | "no message of the user in front";

const userSide: ReadonlySet<string> = new Set([
  "user",
  "custom",
  "bashExecution",
  "branchSummary",
  "compactionSummary",
]);

/** Returns the flaws that services would refuse in these messages. */
export function flawsIn(messages: readonly AgentMessage[]): ReadonlySet<Flaw> {
  const found = new Set<Flaw>();
  const calls = new Set<string>();
  let isFirst = true;
  for (const message of messages) {
    const { role } = message;
    if (role === "system") continue;
    if (isFirst && !userSide.has(role)) found.add("no message of the user in front");
    isFirst = false;
    if (role === "toolResult") {
      if (!calls.delete(message.toolCallId)) found.add("a result without its call");
    } else if (role === "assistant") {
      calls.clear();
      for (const block of message.content) if (block.type === "toolCall") calls.add(block.id);
      if (isEmptyAnswer(message)) found.add("an empty answer");
    } else if (!isLeftOut(message)) calls.clear();
  }
  return found;
}

/** pi omits commands that the user excluded from the context. */
function isLeftOut(message: AgentMessage): boolean {
  return message.role === "bashExecution" && message.excludeFromContext === true;
}

/** pi omits failed answers and sends thoughts without a signature as text. */
function isEmptyAnswer({ stopReason, content }: Extract<AgentMessage, { role: "assistant" }>): boolean {
  if (stopReason === "error" || stopReason === "aborted") return false;
  return content.every((block) => {
    if (block.type === "thinking") return block.redacted === true || (block.thinkingSignature ?? "") !== "";
    return block.type === "text" && block.text.trim() === "";
  });
}

type Fields = Readonly<Record<string, unknown>>;

/** Returns the flaws of a payload's messages in the formats of pi's adapters. Unknown formats have none. */
export function flawsInPayload(messages: readonly unknown[]): ReadonlySet<Flaw> {
  const found = new Set<Flaw>();
  const calls = new Set<string>();
  let isFirst = true;
  for (const message of messages) {
    if (!isRecord(message)) continue;
    const { role } = message;
    if (role === "system" || role === "developer") continue;
    if (isFirst && typeof role === "string" && role !== "user") found.add("no message of the user in front");
    isFirst = false;
    if ((role === "assistant" || role === "model") && isEmpty(message)) found.add("an empty answer");
    for (const part of [message, ...listOf(message["content"]), ...listOf(message["parts"])]) {
      if (!isRecord(part)) continue;
      for (const id of callsOf(part)) calls.add(id);
      const answered = answeredBy(part);
      if (answered !== undefined && !calls.has(answered)) found.add("a result without its call");
    }
  }
  return found;
}

function isEmpty(message: Fields): boolean {
  if (callsOf(message).length > 0) return false;
  const content = message["content"] ?? message["parts"];
  return content === "" || (Array.isArray(content) && content.length === 0);
}

/** The call ids in a message or content part, in the formats of OpenAI, Anthropic, Google and Bedrock. */
function callsOf(part: Fields): string[] {
  const { type, toolUse, functionCall } = part;
  const listed = [...listOf(part["tool_calls"]), ...listOf(part["toolCalls"])];
  const ids = listed.map((call) => (isRecord(call) ? call["id"] : undefined));
  if (type === "tool_use") ids.push(part["id"]);
  if (type === "function_call" || type === "custom_tool_call") ids.push(part["call_id"]);
  if (isRecord(toolUse)) ids.push(toolUse["toolUseId"]);
  if (isRecord(functionCall)) ids.push(functionCall["id"] ?? functionCall["name"]);
  return ids.filter((id) => typeof id === "string");
}

/** The call id that a message or content part answers. */
function answeredBy(part: Fields): string | undefined {
  const { type, role, toolResult, functionResponse } = part;
  let id: unknown;
  if (type === "tool_result") id = part["tool_use_id"];
  else if (type === "function_call_output" || type === "custom_tool_call_output") id = part["call_id"];
  else if (role === "tool") id = part["tool_call_id"] ?? part["toolCallId"];
  else if (isRecord(toolResult)) id = toolResult["toolUseId"];
  else if (isRecord(functionResponse)) id = functionResponse["id"] ?? functionResponse["name"];
  return typeof id === "string" ? id : undefined;
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
