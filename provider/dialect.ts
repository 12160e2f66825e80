import type { JsonObject } from "./json.ts";
import type { ApiName } from "./log.ts";
import type { RequestMessage } from "./messages.ts";
import type { ErrorReply, Piece, StopReason, ToolCall, Usage } from "./reply.ts";

/** What a request asks for, read leniently: what is missing or misshapen is left out. */
export interface Asked {
  readonly model: string | undefined;
  readonly stream: boolean;
  readonly maxTokens: number | undefined;
  readonly messages: readonly RequestMessage[];
  readonly toolNames: readonly string[];
}

/** Why a real provider refuses a request, in its words. */
export interface Violation {
  readonly message: string;
  readonly status: 400 | 401 | 404 | 413;
}

export interface StrictRules {
  /** The models there are. Default: any. */
  readonly models: readonly string[] | undefined;
  /** Whether Anthropic requests may have `system` messages inside the conversation, as its newest models allow. */
  readonly systemMessages: boolean;
  /** Whether a conversation must begin with the user at OpenAI too, as some servers that speak its APIs ask. */
  readonly userFirst: boolean;
}

/** A tool call that has its id. */
export type IdentifiedCall = ToolCall & { readonly id: string };
export type AnswerPiece = Exclude<Piece, ToolCall> | IdentifiedCall;

export interface AnswerHead {
  readonly id: string;
  readonly model: string;
  readonly createdAt: number;
  readonly usage: Usage;
}

/** Writes one streamed answer; each call gives the text to send next. */
export interface StreamEncoder {
  start(): string;
  piece(piece: AnswerPiece): string;
  /** What precedes a broken end is not completed: an error event ends the stream as it stands. */
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
  read(body: JsonObject, target: Target): Asked;
  violations(body: JsonObject, target: Target, rules: StrictRules): readonly Violation[];
  /** The body of an error response. */
  errorBody(error: ErrorReply): JsonObject;
  /** The body of a 400 for a context that is too long. */
  overflowBody(tokens: number, limitTokens: number): JsonObject;
  encoder(head: AnswerHead, body: JsonObject): StreamEncoder;
  /** The body of an answer that is not streamed. */
  whole(answer: WholeAnswer): unknown;
}

/** What the path says; only Google's does. */
export interface Target {
  readonly model?: string;
  readonly stream?: boolean;
}

/** The text that statuses usually come with. */
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
