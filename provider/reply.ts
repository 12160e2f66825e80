import type { Gate } from "./gate.ts";

/** A wait, before the headers ({@link delayed}) or between the parts of an answer. */
export type Pause =
  | { readonly kind: "hold"; readonly gate: Gate }
  | { readonly kind: "delay"; readonly delayMs: number };

/** A text piece is one delta of the stream. */
export type Piece =
  | { readonly kind: "text"; readonly text: string }
  | { readonly kind: "thinking"; readonly text: string }
  | ToolCall;

export interface ToolCall {
  readonly kind: "toolCall";
  readonly name: string;
  /** An object, or a string that is sent unchanged (for invalid JSON; Google only takes objects and gets `{}`). */
  readonly arguments: unknown;
  /** Default: unique in this provider and across providers. */
  readonly id?: string;
}

/** How an answer ends early: each of these ends the reply, and later parts are never sent. */
export type Break =
  /** The connection is reset (TCP RST) after the system has accepted the preceding parts. */
  | { readonly kind: "reset" }
  /** Nothing more is sent until the client or the provider closes. */
  | { readonly kind: "hang" }
  /** The body ends properly, without the API's end marks. */
  | { readonly kind: "cut" }
  /** The API's own error event in the stream, then the end of the body. */
  | { readonly kind: "error"; readonly error: ErrorReply };

export type Part = Pause | Piece | Break | { readonly kind: "raw"; readonly data: string };

export type StopReason = "stop" | "toolUse" | "length" | "refusal";

/** Tokens as pi counts them: `input` excludes tokens read from or written to a cache, `output` includes `reasoning`. */
export interface Usage {
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly cacheReadTokens: number;
  readonly cacheWriteTokens: number;
  readonly reasoningTokens: number;
}

interface Waits {
  /** What happens before the status line is sent, in order. */
  readonly before?: readonly Pause[];
}

export interface AnswerReply extends Waits {
  readonly kind: "answer";
  readonly parts: readonly Part[];
  /** Default: `toolUse` when the parts have a tool call, else `stop`. */
  readonly stop?: StopReason;
  /** Default: the usage of the provider's cache; without one a quarter of the characters read and written. */
  readonly usage?: Partial<Usage>;
  /** In addition to the default headers. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The content of an error: the shape is the API's own. Defaults: the usual texts of the status. */
export interface ErrorReply {
  readonly status: number;
  readonly message?: string;
  /** `error.type` (OpenAI, Anthropic) or `error.status` (Google). */
  readonly type?: string;
  /** `error.code` (OpenAI) or `error.details.error_code` (Anthropic). */
  readonly code?: string;
}

export interface StatusReply extends Waits, ErrorReply {
  readonly kind: "status";
  readonly headers?: Readonly<Record<string, string>>;
  /** Instead of the API's shape: a string is sent unchanged, anything else as JSON. */
  readonly body?: unknown;
}

/** A 400 with each API's words for a context that is too long. */
export interface OverflowReply extends Waits {
  readonly kind: "overflow";
  readonly tokens: number;
  readonly limitTokens: number;
}

export interface ResetReply extends Waits {
  readonly kind: "reset";
}

export interface HangReply extends Waits {
  readonly kind: "hang";
}

export type Reply = AnswerReply | StatusReply | OverflowReply | ResetReply | HangReply;

/** An answer with status 200. A string is one delta of text. */
export function answer(...parts: readonly (string | Part)[]): AnswerReply {
  return {
    kind: "answer",
    parts: parts.map((part) => (typeof part === "string" ? { kind: "text", text: part } : part)),
  };
}

export function thinking(text: string): Piece {
  return { kind: "thinking", text };
}

export function call(name: string, args: unknown = {}, id?: string): ToolCall {
  return { kind: "toolCall", name, arguments: args, ...(id !== undefined && { id }) };
}

export function hold(gate: Gate): Pause {
  return { kind: "hold", gate };
}

export function delay(delayMs: number): Pause {
  return { kind: "delay", delayMs };
}

/** As a reply: the connection is reset before any header. As a part: in the middle of an answer. */
export function reset(): { readonly kind: "reset" } {
  return { kind: "reset" };
}

/**
 * As a reply: no header is ever sent. As a part: the answer stops in the middle. To know when, hold a gate before it.
 */
export function hang(): { readonly kind: "hang" } {
  return { kind: "hang" };
}

export function cut(): Break {
  return { kind: "cut" };
}

/** An error event in the middle of an answer with status 200. Default: overloaded (529). */
export function errorEvent(error: Partial<ErrorReply> = {}): Break {
  return { kind: "error", error: { status: 529, ...error } };
}

/** Raw text for the stream that no encoder would send. Answers that are not streamed skip it. */
export function raw(data: string): Part {
  return { kind: "raw", data };
}

export function status(code: number, options: Omit<StatusReply, "kind" | "status" | "before"> = {}): StatusReply {
  return { kind: "status", status: code, ...options };
}

/** 429 with `retry-after`. */
export function rateLimited(retryAfterSeconds: number): StatusReply {
  return status(429, { headers: { "retry-after": String(retryAfterSeconds) } });
}

export function overflow(tokens = 213_462, limitTokens = 200_000): OverflowReply {
  return { kind: "overflow", tokens, limitTokens };
}

/** The reply with pauses before its headers: `delayed(hold(gate), status(529))`. Its existing pauses come later. */
export function delayed<R extends Reply>(pause: Pause, reply: R): R {
  return { ...reply, before: [pause, ...(reply.before ?? [])] };
}

/** The gates of a reply, in order. */
export function gatesOf(reply: Reply): readonly Gate[] {
  const parts: readonly Part[] = [...(reply.before ?? []), ...(reply.kind === "answer" ? reply.parts : [])];
  return parts.flatMap((part) => (part.kind === "hold" ? [part.gate] : []));
}
