import type { SessionUpdate, ToolCallContent } from "@agentclientprotocol/sdk";

export type CompactionEnd =
  | { readonly kind: "completed"; readonly summary: string }
  | { readonly kind: "failed"; readonly error: string }
  | { readonly kind: "cancelled" };

const title = "Compacting the context";

/** How a client is told of compactions: by updates of their own, or as tool calls. */
export class CompactionUpdates {
  readonly #hasOwn: boolean;

  /** `hasOwn`: the client has the capability `session.compaction`. */
  constructor(hasOwn: boolean) {
    this.#hasOwn = hasOwn;
  }

  started(compactionId: string): SessionUpdate {
    return this.#hasOwn
      ? { sessionUpdate: "compaction_update", compactionId, status: "in_progress" }
      : { sessionUpdate: "tool_call", toolCallId: compactionId, title, kind: "think", status: "in_progress" };
  }

  ended(compactionId: string, end: CompactionEnd): SessionUpdate {
    if (!this.#hasOwn) return { sessionUpdate: "tool_call_update", toolCallId: compactionId, ...toolEnd(end) };
    const words = end.kind === "completed" ? { summary: summaryBlocks(end.summary) } : {};
    const error = end.kind === "failed" ? { error: end.error } : {};
    return { sessionUpdate: "compaction_update", compactionId, status: end.kind, ...words, ...error };
  }

  /** A compaction of which the client was not told when it started. */
  whole(compactionId: string, end: CompactionEnd): SessionUpdate {
    return this.#hasOwn
      ? this.ended(compactionId, end)
      : { sessionUpdate: "tool_call", toolCallId: compactionId, title, kind: "think", ...toolEnd(end) };
  }
}

/** The summary of a branch that was left. */
export function branchSummary(toolCallId: string, summary: string): SessionUpdate {
  return {
    sessionUpdate: "tool_call",
    toolCallId,
    title: "Summary of another branch",
    kind: "think",
    ...toolEnd({ kind: "completed", summary }),
  };
}

function toolEnd(end: CompactionEnd): { status: "completed" | "failed"; content: ToolCallContent[] } {
  const status = end.kind === "completed" ? "completed" : "failed";
  const text = end.kind === "completed" ? end.summary : end.kind === "failed" ? end.error : "Cancelled";
  return { status, content: summaryBlocks(text).map((content) => ({ type: "content", content })) };
}

function summaryBlocks(text: string): { type: "text"; text: string }[] {
  return text === "" ? [] : [{ type: "text", text }];
}
