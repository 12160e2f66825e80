import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { BuiltMessage } from "../../../protocol/link-context.ts";

/** The message list with a past between its leading system messages and the conversation. */
export function withPrefix(messages: readonly AgentMessage[], past: readonly BuiltMessage[]): readonly AgentMessage[] {
  if (past.length === 0) return messages;
  const found = messages.findIndex(({ role }) => role !== "system");
  const at = found < 0 ? messages.length : found;
  return [...messages.slice(0, at), ...past.map(copyOf), ...messages.slice(at)];
}

/** Other extensions may write to the messages of a request, which pi has copied for them: the next one has the same past. */
function copyOf(message: BuiltMessage): AgentMessage {
  const copy =
    "content" in message && Array.isArray(message.content)
      ? { ...message, content: message.content.map((block) => ({ ...block })) }
      : { ...message };
  // pi's types are wider and mutable.
  return copy as unknown as AgentMessage;
}
