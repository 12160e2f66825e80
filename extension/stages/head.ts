import type { AgentMessage, SystemMessage } from "../pi-types.ts";

/**
 * Moves the prompt and the first tools to the front. Two kinds of list have them elsewhere: a session whose history is
 * older than pi's prompt, and a run that pi 0.87.1 starts from a custom message in a session without a user prompt,
 * where pi sends the tools and no prompt. Later system messages, which patch the prompt, stay in place. Returns the
 * list itself if its head is correct.
 */
export function withHead(messages: readonly AgentMessage[], systemPrompt: () => string): readonly AgentMessage[] {
  const first = messages.findIndex(isSystem);
  const head = messages[first];
  if (head === undefined || !isSystem(head)) {
    const prompt = systemPrompt();
    return prompt === "" ? messages : [{ role: "system", content: prompt, timestamp: 0 }, ...messages];
  }
  if (hasPrompt(head)) return first === 0 ? messages : [head, ...messages.toSpliced(first, 1)];
  const rest = messages.toSpliced(first, 1);
  const late = rest.findIndex((message) => isSystem(message) && hasPrompt(message));
  const prompt = rest[late];
  if (prompt === undefined || !isSystem(prompt)) {
    const content = systemPrompt();
    if (content === "") return first === 0 ? messages : [head, ...rest];
    return [{ ...head, content }, ...rest];
  }
  // Only the prompt moves: tool changes must keep their order.
  const { content, sections } = prompt;
  const moved: SystemMessage = { ...head, content, ...(sections === undefined ? {} : { sections }) };
  return [moved, ...rest.toSpliced(late, 1, ...toolChangesOf(prompt))];
}

function isSystem(message: AgentMessage): message is SystemMessage {
  return message.role === "system";
}

function hasPrompt({ content, sections }: SystemMessage): boolean {
  return content.length > 0 || (sections !== undefined && Object.keys(sections).length > 0);
}

function toolChangesOf({ sections: _prompt, ...message }: SystemMessage): SystemMessage[] {
  const hasTools = (message.toolsAdded?.length ?? 0) > 0 || (message.toolsRemoved?.length ?? 0) > 0;
  return hasTools ? [{ ...message, content: "" }] : [];
}
