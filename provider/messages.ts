export type MessageRole = "system" | "user" | "assistant" | "tool";

export interface RequestToolCall {
  /** Empty when the API has no ids (older Google models). */
  readonly id: string;
  readonly name: string;
  /** Parsed; the raw text if it was not valid JSON. */
  readonly arguments: unknown;
}

export interface RequestToolResult {
  /** The id of the call; the tool's name if the API has no ids. */
  readonly callId: string;
  readonly text: string;
  readonly isError: boolean;
}

/** One message of a model request, in one shape for all APIs. The grouping is that of the request. */
export interface RequestMessage {
  /**
   * `developer` is read as `system`, `model` as `assistant`. Only OpenAI's APIs have `tool`: elsewhere user messages
   * contain results.
   */
  readonly role: MessageRole;
  readonly texts: readonly string[];
  readonly thinking: readonly string[];
  readonly toolCalls: readonly RequestToolCall[];
  readonly toolResults: readonly RequestToolResult[];
  readonly imageCount: number;
}

/** The roles to search. Default: all. */
export interface TextScope {
  readonly roles?: readonly MessageRole[];
}

/**
 * How often the messages contain a text: in their texts and in the texts of tool results, never in thinking or in the
 * arguments of tool calls. Occurrences do not overlap; an empty text does not occur.
 */
export function countText(messages: readonly RequestMessage[], text: string, scope: TextScope = {}): number {
  if (text === "") return 0;
  let count = 0;
  for (const message of messages) {
    if (scope.roles !== undefined && !scope.roles.includes(message.role)) continue;
    for (const piece of searchable(message)) count += piece.split(text).length - 1;
  }
  return count;
}

/** The text of the last message: its texts, else its tool results, joined by line breaks. */
export function lastText(messages: readonly RequestMessage[]): {
  readonly text: string;
  readonly isToolResult: boolean;
} {
  const last = messages.at(-1);
  if (last === undefined) return { text: "", isToolResult: false };
  if (last.texts.length > 0) return { text: last.texts.join("\n"), isToolResult: false };
  return { text: last.toolResults.map((result) => result.text).join("\n"), isToolResult: last.toolResults.length > 0 };
}

/** The size of the model's input, in characters. */
export function countCharacters(messages: readonly RequestMessage[]): number {
  let count = 0;
  for (const message of messages) {
    for (const piece of [...searchable(message), ...message.thinking]) count += piece.length;
    for (const call of message.toolCalls) count += (JSON.stringify(call.arguments) ?? "").length;
  }
  return count;
}

function searchable(message: RequestMessage): readonly string[] {
  return [...message.texts, ...message.toolResults.map((result) => result.text)];
}
