import type {
  AnswerHead,
  AnswerPiece,
  Dialect,
  IdentifiedCall,
  ParsedRequest,
  StreamEncoder,
  WholeAnswer,
} from "../dialect.ts";
import { statusMessage } from "../dialect.ts";
import { isObject, type JsonObject, objectsOf, stringOf } from "../json.ts";
import type { RequestMessage } from "../messages.ts";
import { merged } from "../pieces.ts";
import type { ErrorReply, StopReason, Usage } from "../reply.ts";
import { anthropicViolations } from "../strict/anthropic.ts";

/** Anthropic messages. */
export const anthropic: Dialect = {
  api: "anthropic",
  read,
  violations: (body, _target, rules) => anthropicViolations(body, rules),
  errorBody,
  overflowBody: (tokens, limit) =>
    errorBody({ status: 400, message: `prompt is too long: ${tokens} tokens > ${limit} maximum` }),
  encoder: (head) => new AnthropicEncoder(head),
  whole,
};

function read(body: JsonObject): ParsedRequest {
  const system = blocksOf(body["system"]);
  return {
    model: typeof body["model"] === "string" ? body["model"] : undefined,
    stream: body["stream"] === true,
    maxTokens: typeof body["max_tokens"] === "number" ? body["max_tokens"] : undefined,
    messages: [
      ...(system.length > 0 ? [readMessage({ role: "system", content: system })] : []),
      ...objectsOf(body["messages"]).map(readMessage),
    ],
    toolNames: objectsOf(body["tools"]).map((tool) => stringOf(tool["name"])),
  };
}

function readMessage(message: JsonObject): RequestMessage {
  const { role } = message;
  const blocks = blocksOf(message["content"]);
  return {
    role: role === "assistant" || role === "system" ? role : "user",
    texts: textsOf(blocks),
    thinking: ofType(blocks, "thinking").map((block) => stringOf(block["thinking"])),
    toolCalls: ofType(blocks, "tool_use").map((block) => ({
      id: stringOf(block["id"]),
      name: stringOf(block["name"]),
      arguments: block["input"],
    })),
    toolResults: ofType(blocks, "tool_result").map((block) => ({
      callId: stringOf(block["tool_use_id"]),
      text: textsOf(blocksOf(block["content"])).join("\n"),
      isError: block["is_error"] === true,
    })),
    imageCount: ofType(blocks, "image").length,
  };
}

function blocksOf(content: unknown): readonly JsonObject[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : objectsOf(content);
}

function ofType(blocks: readonly JsonObject[], type: string): readonly JsonObject[] {
  return blocks.filter((block) => block["type"] === type);
}

function textsOf(blocks: readonly JsonObject[]): readonly string[] {
  return ofType(blocks, "text").map((block) => stringOf(block["text"]));
}

/** The request id is fixed because pi retries errors whose text has a number like 429 or 500 anywhere in it. */
function errorBody({ status, message, type, code }: ErrorReply): JsonObject {
  const details = code === undefined ? {} : { details: { error_code: code } };
  const error = {
    ...details,
    type: type ?? errorTypes[status] ?? (status >= 500 ? "api_error" : "invalid_request_error"),
  };
  return {
    type: "error",
    error: { ...error, message: message ?? statusMessage(status) },
    request_id: "req_scripted",
  };
}

const errorTypes: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};

const stopReasons: Readonly<Record<StopReason, string>> = {
  stop: "end_turn",
  toolUse: "tool_use",
  length: "max_tokens",
  refusal: "refusal",
};

type BlockKind = AnswerPiece["kind"];

class AnthropicEncoder implements StreamEncoder {
  readonly #head: AnswerHead;
  #open: BlockKind | undefined;
  #index = -1;

  constructor(head: AnswerHead) {
    this.#head = head;
  }

  start(): string {
    const message = {
      ...messageObject(this.#head),
      content: [],
      stop_reason: null,
      usage: usageObject(this.#head.usage, 1),
    };
    return sse("message_start", { message }) + sse("ping", {});
  }

  piece(piece: AnswerPiece): string {
    switch (piece.kind) {
      case "text":
        return this.#ensure("text", { type: "text", text: "" }) + this.#delta({ type: "text_delta", text: piece.text });
      case "thinking":
        return (
          this.#ensure("thinking", { type: "thinking", thinking: "", signature: "" }) +
          this.#delta({ type: "thinking_delta", thinking: piece.text })
        );
      case "toolCall":
        return this.#call(piece);
    }
  }

  error(error: ErrorReply): string {
    const { type, ...body } = errorBody(error);
    return sse(String(type), body);
  }

  finish(stop: StopReason): string {
    const delta = { stop_reason: stopReasons[stop], stop_sequence: null };
    const usage = usageObject(this.#head.usage, this.#head.usage.outputTokens);
    return this.#close() + sse("message_delta", { delta, usage }) + sse("message_stop", {});
  }

  #call(call: IdentifiedCall): string {
    const text = typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments ?? {});
    const half = Math.ceil(text.length / 2);
    const deltas = ["", text.slice(0, half), text.slice(half)];
    return (
      this.#close() +
      this.#ensure("toolCall", { type: "tool_use", id: call.id, name: call.name, input: {} }) +
      deltas.map((piece) => this.#delta({ type: "input_json_delta", partial_json: piece })).join("")
    );
  }

  #ensure(kind: BlockKind, block: JsonObject): string {
    if (this.#open === kind) return "";
    const closed = this.#close();
    this.#open = kind;
    this.#index += 1;
    return closed + sse("content_block_start", { index: this.#index, content_block: block });
  }

  #delta(delta: JsonObject): string {
    return sse("content_block_delta", { index: this.#index, delta });
  }

  #close(): string {
    if (this.#open === undefined) return "";
    const signatureDelta = this.#open === "thinking" ? this.#delta({ type: "signature_delta", signature }) : "";
    this.#open = undefined;
    return signatureDelta + sse("content_block_stop", { index: this.#index });
  }
}

const signature = "c2NyaXB0ZWQ=";

function whole({ head, pieces, stop }: WholeAnswer): JsonObject {
  return {
    ...messageObject(head),
    content: merged(pieces).map(contentBlock),
    stop_reason: stopReasons[stop],
    usage: usageObject(head.usage, head.usage.outputTokens),
  };
}

function contentBlock(piece: AnswerPiece): JsonObject {
  if (piece.kind === "text") return { type: "text", text: piece.text };
  if (piece.kind === "thinking") return { type: "thinking", thinking: piece.text, signature };
  return { type: "tool_use", id: piece.id, name: piece.name, input: isObject(piece.arguments) ? piece.arguments : {} };
}

function messageObject({ id, model }: AnswerHead): JsonObject {
  return { id: `msg_${id}`, type: "message", role: "assistant", model, stop_sequence: null };
}

function usageObject(usage: Usage, outputTokens: number): JsonObject {
  return {
    input_tokens: usage.inputTokens,
    output_tokens: outputTokens,
    cache_read_input_tokens: usage.cacheReadTokens,
    cache_creation_input_tokens: usage.cacheWriteTokens,
  };
}

function sse(event: string, data: JsonObject): string {
  return `event: ${event}\ndata: ${JSON.stringify({ type: event, ...data })}\n\n`;
}
