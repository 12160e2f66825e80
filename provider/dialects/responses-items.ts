import type { AnswerHead, AnswerPiece } from "../dialect.ts";
import type { JsonObject } from "../json.ts";
import type { StopReason, Usage } from "../reply.ts";

/** One item of a response's `output`. */
export type OutputItem = JsonObject & { readonly id: string; readonly type: string };

export interface ItemPlace {
  readonly head: AnswerHead;
  /** The index of the item in the output. */
  readonly index: number;
  /** Whether reasoning has its encrypted content, which a request may ask for. */
  readonly withEncrypted: boolean;
}

export type ResponseStatus = "in_progress" | "completed" | "incomplete";

const encryptedReasoning = "c2NyaXB0ZWQ=";

/** Whether a request asks for the encrypted content of reasoning: without a store only that can be sent back. */
export function includesEncrypted(body: JsonObject): boolean {
  return Array.isArray(body["include"]) && body["include"].includes("reasoning.encrypted_content");
}

/**
 * The complete item of one piece. A call's id `a|fc_b` contains both ids; otherwise the item's id derives from the
 * answer's.
 */
export function itemOf(piece: AnswerPiece, { head, index, withEncrypted }: ItemPlace): OutputItem {
  switch (piece.kind) {
    case "text":
      return {
        id: `msg_${head.id}_${index}`,
        type: "message",
        status: "completed",
        role: "assistant",
        content: [{ type: "output_text", text: piece.text, annotations: [] }],
      };
    case "thinking":
      return {
        id: `rs_${head.id}_${index}`,
        type: "reasoning",
        summary: [{ type: "summary_text", text: piece.text }],
        ...(withEncrypted && { encrypted_content: encryptedReasoning }),
      };
    case "toolCall": {
      const [callId = "", itemId = `fc_${head.id}_${index}`] = piece.id.split("|", 2);
      const text = typeof piece.arguments === "string" ? piece.arguments : JSON.stringify(piece.arguments ?? {});
      return {
        id: itemId,
        type: "function_call",
        status: "completed",
        call_id: callId,
        name: piece.name,
        arguments: text,
      };
    }
  }
}

/** The item in its first event: without content. */
export function startedItem(item: OutputItem): OutputItem {
  switch (item.type) {
    case "message":
      return { ...item, status: "in_progress", content: [] };
    case "reasoning":
      return { id: item.id, type: item.type, summary: [] };
    default:
      return { ...item, status: "in_progress", arguments: "" };
  }
}

/** The response itself, without usage while it is in progress. */
export function responseObject(
  head: AnswerHead,
  output: readonly OutputItem[],
  status: ResponseStatus,
  stop: StopReason = "stop",
): JsonObject {
  const reason = stop === "length" ? "max_output_tokens" : "content_filter";
  return {
    id: `resp_${head.id}`,
    object: "response",
    created_at: Math.floor(head.createdAt / 1000),
    status,
    error: null,
    incomplete_details: status === "incomplete" ? { reason } : null,
    model: head.model,
    output,
    parallel_tool_calls: true,
    store: false,
    usage: status === "in_progress" ? null : usageObject(head.usage),
  };
}

function usageObject(usage: Usage): JsonObject {
  const inputTokens = usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens;
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: usage.cacheReadTokens, cache_write_tokens: usage.cacheWriteTokens },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: inputTokens + usage.outputTokens,
  };
}
