import type { Envelope } from "../protocol/event.ts";

/** One of pi's events as it is on the wire (docs/json.md of pi). The guards below narrow the most common ones. */
export interface PiEvent {
  readonly type: string;
  readonly [key: string]: unknown;
}

/** One event of a session with its place in the session's log. */
export interface SessionEnvelope extends Omit<Envelope, "event"> {
  readonly event: PiEvent;
}

/** A message as pi writes it (docs/message-types.md of pi). Assistant messages have the optional fields. */
export interface PiMessage {
  readonly role: string;
  readonly content?: unknown;
  /** `stop`, `length`, `toolUse`, `error`, `aborted`, `deferred`; `pending` while it streams. */
  readonly stopReason?: string;
  readonly errorMessage?: string;
  readonly [key: string]: unknown;
}

/** A piece of the assistant's text. `message_end` has the complete, authoritative text. */
export interface TextDeltaEvent extends PiEvent {
  readonly type: "message_update";
  readonly assistantMessageEvent: {
    readonly type: "text_delta";
    readonly contentIndex: number;
    readonly delta: string;
  };
}

export interface MessageEndEvent extends PiEvent {
  readonly type: "message_end";
  readonly message: PiMessage;
}

/** pi has no work left: no retry, no compaction, no queued message. */
export interface AgentSettledEvent extends PiEvent {
  readonly type: "agent_settled";
}

export interface ToolExecutionStartEvent extends PiEvent {
  readonly type: "tool_execution_start";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly args: unknown;
}

export interface ToolExecutionEndEvent extends PiEvent {
  readonly type: "tool_execution_end";
  readonly toolCallId: string;
  readonly toolName: string;
  readonly result: unknown;
  readonly isError: boolean;
}

export function isTextDelta(event: PiEvent): event is TextDeltaEvent {
  if (event.type !== "message_update") return false;
  const update = event["assistantMessageEvent"] as { readonly type?: unknown; readonly delta?: unknown } | undefined;
  return update?.type === "text_delta" && typeof update.delta === "string";
}

export function isMessageEnd(event: PiEvent): event is MessageEndEvent {
  return event.type === "message_end" && typeof event["message"] === "object" && event["message"] !== null;
}

export function isAgentSettled(event: PiEvent): event is AgentSettledEvent {
  return event.type === "agent_settled";
}

export function isToolExecutionStart(event: PiEvent): event is ToolExecutionStartEvent {
  return event.type === "tool_execution_start";
}

export function isToolExecutionEnd(event: PiEvent): event is ToolExecutionEndEvent {
  return event.type === "tool_execution_end";
}

/** Returns the text of a message: its concatenated text blocks, without thinking, calls and images. */
export function textOf(message: PiMessage): string {
  if (typeof message.content === "string") return message.content;
  if (!Array.isArray(message.content)) return "";
  return (message.content as readonly ({ readonly type?: unknown; readonly text?: unknown } | null)[])
    .map((block) => (block?.type === "text" && typeof block.text === "string" ? block.text : ""))
    .join("");
}
