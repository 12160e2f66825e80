import type { AgentMessage, SessionEntry } from "../../../extension/pi-types.ts";
import { CONTEXT_ROOT_TYPE } from "../../../protocol/link.ts";
import type { BuiltMessage } from "../../../protocol/link-context.ts";
import { isRecord } from "../../../protocol/objects.ts";
import { INSTRUCTIONS_SECTION } from "../../document/document.ts";

/** Inserts a past between the leading system messages and the conversation. */
export function withPrefix(messages: readonly AgentMessage[], past: readonly BuiltMessage[]): readonly AgentMessage[] {
  if (past.length === 0) return messages;
  const found = messages.findIndex(({ role }) => role !== "system");
  const at = found < 0 ? messages.length : found;
  return [...messages.slice(0, at), ...past.map(copyOf), ...messages.slice(at)];
}

/** Other extensions may modify the messages of a request; the next request needs the same past. */
function copyOf(message: BuiltMessage): AgentMessage {
  const copy =
    "content" in message && Array.isArray(message.content)
      ? { ...message, content: message.content.map((block) => ({ ...block })) }
      : { ...message };
  // pi's types are wider and mutable.
  return copy as unknown as AgentMessage;
}

/** The text of the prompt's section, with tags at its beginning and end like pi's own sections. */
export function instructionsSection(instructions: string): string {
  return `<${INSTRUCTIONS_SECTION}>\n${instructions}\n</${INSTRUCTIONS_SECTION}>`;
}

/**
 * Returns the message list with the section as the last one of its head, exactly once. A list without a head gets one. A
 * system message further down would be a different text for models that accept system messages between others.
 */
export function withInstructions(messages: readonly AgentMessage[], section: string): readonly AgentMessage[] {
  const [head, ...rest] = messages;
  if (head?.role !== "system") {
    return [{ role: "system", content: "", sections: { [INSTRUCTIONS_SECTION]: section }, timestamp: 0 }, ...messages];
  }
  const { [INSTRUCTIONS_SECTION]: _, ...others } = head.sections ?? {};
  return [{ ...head, sections: { ...others, [INSTRUCTIONS_SECTION]: section } }, ...rest];
}

/**
 * Returns the instructions in the root entry of a session that was written from a context. Reads no other field, because
 * the entry can be large.
 */
export function rootInstructions(entries: readonly SessionEntry[]): string | undefined {
  const root = entries[0];
  if (root?.type !== "custom" || root.customType !== CONTEXT_ROOT_TYPE || root.parentId !== null) return undefined;
  const instructions = isRecord(root.data) && root.data["version"] === 1 ? root.data["instructions"] : undefined;
  return typeof instructions === "string" && instructions !== "" ? instructions : undefined;
}
