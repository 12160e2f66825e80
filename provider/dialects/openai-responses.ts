import type { AnswerHead, AnswerPiece, Dialect, ParsedRequest, StreamEncoder, WholeAnswer } from "../dialect.ts";
import { type JsonObject, objectsOf, parsedOrText, stringOf } from "../json.ts";
import type { MessageRole, RequestMessage } from "../messages.ts";
import { merged } from "../pieces.ts";
import type { ErrorReply, StopReason } from "../reply.ts";
import { responsesViolations } from "../strict/openai-responses.ts";
import { errorObject } from "./openai-errors.ts";
import { includesEncrypted, itemOf, type OutputItem, responseObject, startedItem } from "./responses-items.ts";

/**
 * OpenAI Responses. Thinking is sent as the summary of a reasoning item; ids of calls may have pi's form
 * `call_id|item_id`.
 */
export const openaiResponses: Dialect = {
  api: "openai-responses",
  read,
  violations: (body, _target, rules) => responsesViolations(body, rules),
  errorBody: (error) => ({ error: errorObject(error) }),
  overflowBody: () => ({
    error: {
      message: "Your input exceeds the context window of this model. Please adjust your input and try again.",
      type: "invalid_request_error",
      param: "input",
      code: "context_length_exceeded",
    },
  }),
  encoder: (head, body) => new ResponsesEncoder(head, includesEncrypted(body)),
  whole,
};

function read(body: JsonObject): ParsedRequest {
  const { model, instructions, input, max_output_tokens: maxTokens } = body;
  return {
    model: typeof model === "string" ? model : undefined,
    stream: body["stream"] === true,
    maxTokens: typeof maxTokens === "number" ? maxTokens : undefined,
    messages: [
      ...(typeof instructions === "string" ? [message("system", { texts: [instructions] })] : []),
      ...(typeof input === "string" ? [message("user", { texts: [input] })] : turnsOf(objectsOf(input).map(readItem))),
    ],
    toolNames: objectsOf(body["tools"]).map((tool) => stringOf(tool["name"])),
  };
}

/** Adjacent items of an assistant are one message, because one answer of a model has several items. */
function turnsOf(read: readonly RequestMessage[]): readonly RequestMessage[] {
  const turns: RequestMessage[] = [];
  for (const next of read) {
    const last = turns.at(-1);
    if (last?.role !== "assistant" || next.role !== "assistant") turns.push(next);
    else {
      turns[turns.length - 1] = {
        ...last,
        texts: [...last.texts, ...next.texts],
        thinking: [...last.thinking, ...next.thinking],
        toolCalls: [...last.toolCalls, ...next.toolCalls],
      };
    }
  }
  return turns;
}

function readItem(item: JsonObject): RequestMessage {
  switch (item["type"]) {
    case "reasoning":
      return message("assistant", { thinking: textsOf(item["summary"]) });
    case "function_call":
      return message("assistant", { toolCalls: [callOf(item, parsedOrText(stringOf(item["arguments"])))] });
    case "custom_tool_call":
      return message("assistant", { toolCalls: [callOf(item, item["input"])] });
    case "function_call_output":
    case "custom_tool_call_output": {
      const text = textsOf(item["output"]).join("\n");
      return message("tool", {
        toolResults: [{ callId: stringOf(item["call_id"]), text, isError: false }],
        imageCount: imagesIn(item["output"]),
      });
    }
    default:
      return message(roleOf(item["role"]), {
        texts: textsOf(item["content"]),
        imageCount: imagesIn(item["content"]),
      });
  }
}

function callOf(item: JsonObject, args: unknown): RequestMessage["toolCalls"][number] {
  return { id: stringOf(item["call_id"]), name: stringOf(item["name"]), arguments: args };
}

function message(role: MessageRole, more: Partial<RequestMessage>): RequestMessage {
  return { role, texts: [], thinking: [], toolCalls: [], toolResults: [], imageCount: 0, ...more };
}

function roleOf(role: unknown): MessageRole {
  if (role === "system" || role === "developer") return "system";
  return role === "assistant" ? role : "user";
}

function textsOf(content: unknown): readonly string[] {
  if (typeof content === "string") return [content];
  return objectsOf(content).flatMap((part) => (typeof part["text"] === "string" ? [part["text"]] : []));
}

function imagesIn(content: unknown): number {
  return objectsOf(content).filter((part) => part["type"] === "input_image").length;
}

/** An item that is being sent, and its position. */
interface OpenItem {
  readonly kind: "text" | "thinking";
  readonly index: number;
  text: string;
}

class ResponsesEncoder implements StreamEncoder {
  readonly #head: AnswerHead;
  readonly #withEncrypted: boolean;
  readonly #output: OutputItem[] = [];
  #open: OpenItem | undefined;
  #sequence = 0;

  constructor(head: AnswerHead, withEncrypted: boolean) {
    this.#head = head;
    this.#withEncrypted = withEncrypted;
  }

  start(): string {
    const response = responseObject(this.#head, [], "in_progress");
    return this.#event("response.created", { response }) + this.#event("response.in_progress", { response });
  }

  piece(piece: AnswerPiece): string {
    if (piece.kind === "toolCall") return this.#close() + this.#call(piece);
    const before = this.#ensure(piece.kind);
    if (this.#open !== undefined) this.#open.text += piece.text;
    const name = piece.kind === "text" ? "response.output_text.delta" : "response.reasoning_summary_text.delta";
    return before + this.#part(name, { delta: piece.text });
  }

  error(error: ErrorReply): string {
    const { message: text, code, type } = errorObject(error);
    return this.#event("error", { code: code ?? type, message: text, param: null });
  }

  finish(stop: StopReason): string {
    const closed = this.#close();
    const status = stop === "length" || stop === "refusal" ? "incomplete" : "completed";
    return (
      closed + this.#event(`response.${status}`, { response: responseObject(this.#head, this.#output, status, stop) })
    );
  }

  #call(piece: Extract<AnswerPiece, { readonly kind: "toolCall" }>): string {
    const index = this.#output.length;
    const item = itemOf(piece, { head: this.#head, index, withEncrypted: this.#withEncrypted });
    const args = stringOf(item["arguments"]);
    const half = Math.ceil(args.length / 2);
    const at = { item_id: item["id"], output_index: index };
    this.#output.push(item);
    return [
      this.#event("response.output_item.added", { output_index: index, item: startedItem(item) }),
      ...[args.slice(0, half), args.slice(half)]
        .filter((delta) => delta !== "")
        .map((delta) => this.#event("response.function_call_arguments.delta", { ...at, delta })),
      this.#event("response.function_call_arguments.done", { ...at, name: piece.name, arguments: args }),
      this.#event("response.output_item.done", { output_index: index, item }),
    ].join("");
  }

  #ensure(kind: OpenItem["kind"]): string {
    if (this.#open?.kind === kind) return "";
    const closed = this.#close();
    this.#open = { kind, index: this.#output.length, text: "" };
    const item = startedItem(this.#itemOf(this.#open));
    const added = kind === "text" ? "response.content_part.added" : "response.reasoning_summary_part.added";
    return (
      closed +
      this.#event("response.output_item.added", { output_index: this.#open.index, item }) +
      this.#part(added, { part: partOf(kind, "") })
    );
  }

  #close(): string {
    const open = this.#open;
    if (open === undefined) return "";
    const { kind, text, index } = open;
    const name = kind === "text" ? "response.output_text.done" : "response.reasoning_summary_text.done";
    const done = kind === "text" ? "response.content_part.done" : "response.reasoning_summary_part.done";
    const item = this.#itemOf(open);
    const ended =
      this.#part(name, { text }) +
      this.#part(done, { part: partOf(kind, text) }) +
      this.#event("response.output_item.done", { output_index: index, item });
    this.#output.push(item);
    this.#open = undefined;
    return ended;
  }

  /** An event of the item that is open. */
  #part(name: string, more: JsonObject): string {
    const { kind = "text", index = 0 } = this.#open ?? {};
    const where = kind === "text" ? { content_index: 0 } : { summary_index: 0 };
    const id = this.#open === undefined ? "" : this.#itemOf(this.#open)["id"];
    return this.#event(name, { item_id: id, output_index: index, ...where, ...more });
  }

  #itemOf({ kind, text, index }: OpenItem): OutputItem {
    return itemOf({ kind, text }, { head: this.#head, index, withEncrypted: this.#withEncrypted });
  }

  #event(type: string, data: JsonObject): string {
    const text = JSON.stringify({ type, sequence_number: this.#sequence, ...data });
    this.#sequence += 1;
    return `event: ${type}\ndata: ${text}\n\n`;
  }
}

function partOf(kind: OpenItem["kind"], text: string): JsonObject {
  return kind === "text" ? { type: "output_text", text, annotations: [] } : { type: "summary_text", text };
}

function whole({ head, pieces, stop }: WholeAnswer): JsonObject {
  const output = merged(pieces).map((piece, index) => itemOf(piece, { head, index, withEncrypted: false }));
  const status = stop === "length" || stop === "refusal" ? "incomplete" : "completed";
  return responseObject(head, output, status, stop);
}
