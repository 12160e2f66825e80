import type {
  AnswerHead,
  AnswerPiece,
  Dialect,
  IdentifiedCall,
  ParsedRequest,
  StreamEncoder,
  WholeAnswer,
} from "../dialect.ts";
import { isObject, type JsonObject, objectsOf, parsedOrText, stringOf } from "../json.ts";
import type { MessageRole, RequestMessage, RequestToolCall } from "../messages.ts";
import type { ErrorReply, StopReason, Usage } from "../reply.ts";
import { openaiViolations } from "../strict/openai.ts";
import { errorObject } from "./openai-errors.ts";

/** OpenAI chat completions. Thinking is sent as `reasoning_content`, as most compatible servers do. */
export const openai: Dialect = {
  api: "openai",
  read,
  violations: (body, _target, rules) => openaiViolations(body, rules),
  errorBody: (error) => ({ error: errorObject(error) }),
  overflowBody: (tokens, limit) => ({
    error: {
      message: `This model's maximum context length is ${limit} tokens. However, your messages resulted in ${tokens} tokens. Please reduce the length of the messages.`,
      type: "invalid_request_error",
      param: "messages",
      code: "context_length_exceeded",
    },
  }),
  encoder: (head, body) => new OpenAIEncoder(head, includesUsage(body)),
  whole,
};

function read(body: JsonObject): ParsedRequest {
  const maxTokens = body["max_completion_tokens"] ?? body["max_tokens"];
  return {
    model: typeof body["model"] === "string" ? body["model"] : undefined,
    stream: body["stream"] === true,
    maxTokens: typeof maxTokens === "number" ? maxTokens : undefined,
    messages: objectsOf(body["messages"]).map(readMessage),
    toolNames: objectsOf(body["tools"]).map((tool) => {
      const declared = isObject(tool["function"]) ? tool["function"] : tool["custom"];
      return isObject(declared) ? stringOf(declared["name"]) : "";
    }),
  };
}

function readMessage(message: JsonObject): RequestMessage {
  const texts = textsOf(message["content"]);
  const isTool = message["role"] === "tool";
  const reasoning = stringOf(message["reasoning_content"] ?? message["reasoning"]);
  return {
    role: roleOf(message["role"]),
    texts: isTool ? [] : texts,
    thinking: reasoning === "" ? [] : [reasoning],
    toolCalls: objectsOf(message["tool_calls"]).map(readCall),
    toolResults: isTool ? [{ callId: stringOf(message["tool_call_id"]), text: texts.join("\n"), isError: false }] : [],
    imageCount: objectsOf(message["content"]).filter((part) => part["type"] === "image_url").length,
  };
}

function roleOf(role: unknown): MessageRole {
  if (role === "system" || role === "developer") return "system";
  return role === "assistant" || role === "tool" ? role : "user";
}

function textsOf(content: unknown): readonly string[] {
  if (typeof content === "string") return [content];
  return objectsOf(content).flatMap((part) => (typeof part["text"] === "string" ? [part["text"]] : []));
}

function readCall(call: JsonObject): RequestToolCall {
  const declared = isObject(call["function"]) ? call["function"] : {};
  return {
    id: stringOf(call["id"]),
    name: stringOf(declared["name"]),
    arguments: parsedOrText(stringOf(declared["arguments"])),
  };
}

function includesUsage(body: JsonObject): boolean {
  return isObject(body["stream_options"]) && body["stream_options"]["include_usage"] === true;
}

const finishReasons: Readonly<Record<StopReason, string>> = {
  stop: "stop",
  toolUse: "tool_calls",
  length: "length",
  refusal: "content_filter",
};

class OpenAIEncoder implements StreamEncoder {
  readonly #head: AnswerHead;
  readonly #includesUsage: boolean;
  #calls = 0;

  constructor(head: AnswerHead, withUsage: boolean) {
    this.#head = head;
    this.#includesUsage = withUsage;
  }

  start(): string {
    return this.#delta({ role: "assistant", content: "" });
  }

  piece(piece: AnswerPiece): string {
    switch (piece.kind) {
      case "text":
        return this.#delta({ content: piece.text });
      case "thinking":
        return this.#delta({ reasoning_content: piece.text });
      case "toolCall":
        return this.#call(piece);
    }
  }

  error(error: ErrorReply): string {
    return sse({ error: errorObject(error) });
  }

  finish(stop: StopReason): string {
    const usage = this.#includesUsage ? sse({ ...this.#chunk([]), usage: usageObject(this.#head.usage) }) : "";
    return `${this.#delta({}, finishReasons[stop])}${usage}data: [DONE]\n\n`;
  }

  #call(call: IdentifiedCall): string {
    const index = this.#calls;
    this.#calls += 1;
    const text = argumentsText(call);
    const half = Math.ceil(text.length / 2);
    const start = { index, id: call.id, type: "function", function: { name: call.name, arguments: "" } };
    const rest = [text.slice(0, half), text.slice(half)].filter((piece) => piece !== "");
    return [start, ...rest.map((piece) => ({ index, function: { arguments: piece } }))]
      .map((delta) => this.#delta({ tool_calls: [delta] }))
      .join("");
  }

  #delta(delta: JsonObject, finishReason: string | null = null): string {
    return sse({
      ...this.#chunk([{ index: 0, delta, logprobs: null, finish_reason: finishReason }]),
      ...(this.#includesUsage && { usage: null }),
    });
  }

  #chunk(choices: readonly unknown[]): JsonObject {
    const { id, model, createdAt } = this.#head;
    return {
      id: `chatcmpl-${id}`,
      object: "chat.completion.chunk",
      created: Math.floor(createdAt / 1000),
      model,
      choices,
    };
  }
}

function whole({ head, pieces, stop }: WholeAnswer): JsonObject {
  const text = pieces.flatMap((piece) => (piece.kind === "text" ? [piece.text] : [])).join("");
  const reasoning = pieces.flatMap((piece) => (piece.kind === "thinking" ? [piece.text] : [])).join("");
  const calls = pieces.filter((piece) => piece.kind === "toolCall");
  const message = {
    role: "assistant",
    content: text === "" && calls.length > 0 ? null : text,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(calls.length > 0 && {
      tool_calls: calls.map((call) => ({
        id: call.id,
        type: "function",
        function: { name: call.name, arguments: argumentsText(call) },
      })),
    }),
  };
  return {
    id: `chatcmpl-${head.id}`,
    object: "chat.completion",
    created: Math.floor(head.createdAt / 1000),
    model: head.model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: finishReasons[stop] }],
    usage: usageObject(head.usage),
  };
}

function usageObject(usage: Usage): JsonObject {
  const promptTokens = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  return {
    prompt_tokens: promptTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: promptTokens + usage.outputTokens,
    prompt_tokens_details: { cached_tokens: usage.cacheReadTokens, cache_write_tokens: usage.cacheWriteTokens },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  };
}

function argumentsText(call: IdentifiedCall): string {
  return typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments ?? {});
}

function sse(data: JsonObject): string {
  return `data: ${JSON.stringify(data)}\n\n`;
}
