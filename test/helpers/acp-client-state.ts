import type { SessionUpdate } from "@agentclientprotocol/sdk";
import type { Unchecked } from "./unchecked.ts";

/** What a client shows of a session, as far as live updates and a replay must agree on it. */
export interface ClientState {
  /** Texts, and tool calls by their ids, in order. Adjacent texts of a kind are one. */
  readonly timeline: readonly { readonly kind: string; readonly text: string }[];
  readonly tools: readonly Unchecked[];
  readonly title: string | null | undefined;
}

const toolFields = ["name", "title", "kind", "status", "rawInput", "locations", "content", "rawOutput"];

/** The state that a client builds. Left out: notices, ids of messages, terminals, and the content of `write`. */
export function clientState(updates: readonly SessionUpdate[]): ClientState {
  const timeline: { kind: string; text: string }[] = [];
  const tools = new Map<string, Unchecked>();
  let title: string | null | undefined;
  // As a client gets it.
  for (const update of JSON.parse(JSON.stringify(updates)) as Unchecked[]) {
    const { sessionUpdate: kind, toolCallId, content } = update;
    if (kind.endsWith("_chunk")) {
      const text: string = content.text ?? `[${content.type}]`;
      const last = timeline.at(-1);
      if (last !== undefined && last.kind === kind) last.text += text;
      else timeline.push({ kind, text });
    } else if (kind === "tool_call" || kind === "compaction_update") {
      const id = toolCallId ?? update.compactionId;
      if (!tools.has(id)) timeline.push({ kind: "tool", text: publicId(id) });
      tools.set(id, { ...tools.get(id), ...update });
    } else if (kind === "tool_call_update") {
      if (!tools.has(toolCallId)) throw new Error(`The update of ${toolCallId} came before the tool call.`);
      tools.set(toolCallId, { ...tools.get(toolCallId), ...update });
    } else if (kind === "session_info_update") title = update.title;
  }
  return { timeline, tools: Array.from(tools, ([id, tool]) => toolState(id, tool)), title };
}

function toolState(id: string, tool: Unchecked): Unchecked {
  const state = Object.fromEntries(toolFields.map((field) => [field, tool[field]]));
  const content = tool.name === "write" && tool.status === "completed" ? [] : (tool.content ?? []);
  const exitCode = tool._meta?.["pi-rpcd"]?.exitCode;
  return { ...state, id: publicId(id), content, locations: tool.locations ?? [], summary: tool.summary, exitCode };
}

/** Live updates do not know the entry of a compaction when it begins. */
function publicId(id: string): string {
  return id.replace(/^compaction-.*/, "compaction");
}
