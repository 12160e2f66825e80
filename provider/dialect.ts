import type { JsonObject } from "./json.ts";
import type { RequestMessage } from "./messages.ts";
import type { ErrorReply, Piece, StopReason, ToolCall, Usage } from "./reply.ts";

export type ApiName = "openai" | "openai-responses" | "anthropic" | "google";

/** The content of a request, parsed leniently: missing or malformed parts are skipped. */
export interface ParsedRequest {
  readonly model: string | undefined;
  readonly stream: boolean;
  readonly maxTokens: number | undefined;
  readonly messages: readonly RequestMessage[];
  readonly toolNames: readonly string[];
}

/** The reason for which a real provider refuses a request, in its words. */
export interface Violation {
  readonly message: string;
  readonly status: 400 | 401 | 404 | 413;
  /** As in {@link ErrorReply}. */
  readonly code?: string;
}

export interface StrictRules {
  /** The known models. Default: any. */
  readonly models: readonly string[] | undefined;
  /** Whether Anthropic requests may have `system` messages inside the conversation, as its newest models allow. */
  readonly systemMessages: boolean;
  /** Whether an OpenAI conversation must also begin with the user, as some compatible servers require. */
  readonly userFirst: boolean;
}

/** A tool call with an id. */
export type IdentifiedCall = ToolCall & { readonly id: string };
export type AnswerPiece = Exclude<Piece, ToolCall> | IdentifiedCall;

export interface AnswerHead {
  readonly id: string;
  readonly model: string;
  readonly createdAt: number;
  readonly usage: Usage;
}

/** Encodes one streamed answer; each call returns the text to send next. */
export interface StreamEncoder {
  start(): string;
  piece(piece: AnswerPiece): string;
  /** A broken stream is not completed before its error event. */
  error(error: ErrorReply): string;
  finish(stop: StopReason): string;
}

export interface WholeAnswer {
  readonly head: AnswerHead;
  readonly pieces: readonly AnswerPiece[];
  readonly stop: StopReason;
}

/** The server's side of one API. */
export interface Dialect {
  readonly api: ApiName;
  read(body: JsonObject, target: Target): ParsedRequest;
  violations(body: JsonObject, target: Target, rules: StrictRules): readonly Violation[];
  /** The body of an error response. */
  errorBody(error: ErrorReply): JsonObject;
  /** The body of a 400 for a context that is too long. */
  overflowBody(tokens: number, limitTokens: number): JsonObject;
  encoder(head: AnswerHead, body: JsonObject): StreamEncoder;
  /** The body of an answer that is not streamed. */
  whole(answer: WholeAnswer): unknown;
}

/** The path's parameters; only Google has them. */
export interface Target {
  readonly model?: string;
  readonly stream?: boolean;
}

/** The usual texts of statuses. */
export function statusMessage(status: number): string {
  return statusMessages[status] ?? `The script says ${status}`;
}

const statusMessages: Readonly<Record<number, string>> = {
  400: "The script refuses this request",
  401: "Incorrect API key provided",
  403: "Permission denied",
  404: "Not found",
  413: "Request exceeds the maximum size",
  429: "Rate limit reached, please try again later",
  500: "The server had an error while processing your request",
  503: "Service unavailable",
  529: "Overloaded",
};
