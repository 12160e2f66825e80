import type {
  AnswerHead,
  AnswerPiece,
  Dialect,
  ParsedRequest,
  StreamEncoder,
  Target,
  WholeAnswer,
} from "../dialect.ts";
import { statusMessage } from "../dialect.ts";
import { isObject, type JsonObject, objectsOf, stringOf } from "../json.ts";
import type { RequestMessage } from "../messages.ts";
import { merged } from "../pieces.ts";
import type { ErrorReply, StopReason, Usage } from "../reply.ts";
import { googleViolations } from "../strict/google.ts";

/** Google's generative language API: text, thoughts and function calls. */
export const google: Dialect = {
  api: "google",
  read,
  violations: googleViolations,
  errorBody,
  overflowBody: (tokens, limit) =>
    errorBody({
      status: 400,
      message: `The input token count (${tokens}) exceeds the maximum number of tokens allowed (${limit}).`,
    }),
  encoder: (head) => new GoogleEncoder(head),
  whole,
};

function read(body: JsonObject, target: Target): ParsedRequest {
  const config = isObject(body["generationConfig"]) ? body["generationConfig"] : {};
  const system = body["systemInstruction"];
  return {
    model: target.model,
    stream: target.stream === true,
    maxTokens: typeof config["maxOutputTokens"] === "number" ? config["maxOutputTokens"] : undefined,
    messages: [
      ...(isObject(system) ? [{ ...readContent(system), role: "system" as const }] : []),
      ...objectsOf(body["contents"]).map(readContent),
    ],
    toolNames: objectsOf(body["tools"]).flatMap((tool) =>
      objectsOf(tool["functionDeclarations"]).map((declared) => stringOf(declared["name"])),
    ),
  };
}

function readContent(content: JsonObject): RequestMessage {
  const parts = objectsOf(content["parts"]);
  const texts = parts.filter((part) => typeof part["text"] === "string");
  const calls = parts.flatMap((part) => (isObject(part["functionCall"]) ? [part["functionCall"]] : []));
  const results = parts.flatMap((part) => (isObject(part["functionResponse"]) ? [part["functionResponse"]] : []));
  return {
    role: content["role"] === "model" ? "assistant" : "user",
    texts: texts.filter((part) => part["thought"] !== true).map((part) => stringOf(part["text"])),
    thinking: texts.filter((part) => part["thought"] === true).map((part) => stringOf(part["text"])),
    toolCalls: calls.map((call) => ({
      id: stringOf(call["id"]),
      name: stringOf(call["name"]),
      arguments: call["args"],
    })),
    toolResults: results.map((result) => ({
      callId: stringOf(result["id"]) || stringOf(result["name"]),
      text: resultText(result["response"]),
      isError: isObject(result["response"]) && "error" in result["response"],
    })),
    imageCount: parts.filter((part) => isObject(part["inlineData"])).length,
  };
}

/** The convention of Google's clients is `{output}` or `{error}`; anything else is shown as JSON. */
function resultText(response: unknown): string {
  if (!isObject(response)) return "";
  const said = response["output"] ?? response["error"];
  return typeof said === "string" ? said : JSON.stringify(response);
}

function errorBody({ status, message, type }: ErrorReply): JsonObject {
  const name = type ?? statusNames[status] ?? (status >= 500 ? "INTERNAL" : "INVALID_ARGUMENT");
  return { error: { code: status, message: message ?? statusMessage(status), status: name } };
}

const statusNames: Readonly<Record<number, string>> = {
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  503: "UNAVAILABLE",
  529: "UNAVAILABLE",
};

const finishReasons: Readonly<Record<StopReason, string>> = {
  stop: "STOP",
  toolUse: "STOP",
  length: "MAX_TOKENS",
  refusal: "SAFETY",
};

class GoogleEncoder implements StreamEncoder {
  readonly #head: AnswerHead;

  constructor(head: AnswerHead) {
    this.#head = head;
  }

  /** The API has no opening event: its first chunk has content. */
  start(): string {
    return "";
  }

  piece(piece: AnswerPiece): string {
    return sse({ candidates: [{ content: { role: "model", parts: [part(piece)] }, index: 0 }], ...tail(this.#head) });
  }

  error(error: ErrorReply): string {
    return sse(errorBody(error));
  }

  finish(stop: StopReason): string {
    const candidate = {
      content: { role: "model", parts: [{ text: "" }] },
      finishReason: finishReasons[stop],
      index: 0,
    };
    return sse({ candidates: [candidate], usageMetadata: usageObject(this.#head.usage), ...tail(this.#head) });
  }
}

function whole({ head, pieces, stop }: WholeAnswer): JsonObject {
  const candidate = {
    content: { role: "model", parts: merged(pieces).map(part) },
    finishReason: finishReasons[stop],
    index: 0,
  };
  return { candidates: [candidate], usageMetadata: usageObject(head.usage), ...tail(head) };
}

function part(piece: AnswerPiece): JsonObject {
  if (piece.kind === "text") return { text: piece.text };
  if (piece.kind === "thinking") return { text: piece.text, thought: true };
  return { functionCall: { id: piece.id, name: piece.name, args: isObject(piece.arguments) ? piece.arguments : {} } };
}

function tail({ id, model }: AnswerHead): JsonObject {
  return { modelVersion: model, responseId: id };
}

function usageObject(usage: Usage): JsonObject {
  const promptTokens = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  return {
    promptTokenCount: promptTokens,
    cachedContentTokenCount: usage.cacheReadTokens,
    candidatesTokenCount: usage.outputTokens - usage.reasoningTokens,
    thoughtsTokenCount: usage.reasoningTokens,
    totalTokenCount: promptTokens + usage.outputTokens,
  };
}

function sse(data: JsonObject): string {
  return `data: ${JSON.stringify(data)}\r\n\r\n`;
}
