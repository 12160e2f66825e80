import type { AgentMessage } from "../../extension/pi-types.ts";
import { isRecord } from "../../protocol/objects.ts";
import { COMPRESS_TOOL } from "../../protocol/pruning/config.ts";
import type { BlockTree } from "./pruning-services.ts";

type Assistant = Extract<AgentMessage, { role: "assistant" }>;
type ToolCall = Extract<Assistant["content"][number], { type: "toolCall" }>;

/** The blocks of each call by the answer's entry and the call id, because services can reuse call ids in a session. */
type Stored = ReadonlyMap<string, readonly string[]>;

/** Replaces the summaries in compress calls by references to the stored blocks, which contain the text. */
export class TrimmedCalls {
  #tree: BlockTree | undefined;
  #stored: Stored = new Map();
  #answers: ReadonlySet<string> = new Set();
  /** Each message is trimmed once. */
  #made = new WeakMap<object, Assistant>();

  /** Call at the start of each request. */
  begin(tree: BlockTree): void {
    if (tree === this.#tree) return;
    this.#tree = tree;
    this.#made = new WeakMap();
    const stored = new Map<string, string[]>();
    const answers = new Set<string>();
    for (const { id, callId, answerId } of tree.all) {
      if (callId === undefined || answerId === undefined) continue;
      answers.add(answerId);
      const ids = stored.get(`${answerId} ${callId}`);
      if (ids === undefined) stored.set(`${answerId} ${callId}`, [id]);
      else ids.push(id);
    }
    this.#stored = stored;
    this.#answers = answers;
  }

  /** Returns the same message if there is nothing to trim. */
  of(message: AgentMessage, entryId: string): AgentMessage {
    if (message.role !== "assistant" || !this.#answers.has(entryId)) return message;
    const known = this.#made.get(message);
    if (known !== undefined) return known;
    const content = message.content.map((block) => {
      if (block.type !== "toolCall" || block.name !== COMPRESS_TOOL) return block;
      // A signed call must be sent unchanged.
      if (block.thoughtSignature !== undefined) return block;
      const ids = this.#stored.get(`${entryId} ${block.id}`);
      return ids === undefined ? block : { ...block, arguments: trimmed(block.arguments, ids) };
    });
    const made = { ...message, content };
    this.#made.set(message, made);
    return made;
  }
}

/** Keeps the shape that the model wrote, if it is recognizable. */
function trimmed(given: unknown, ids: readonly string[]): ToolCall["arguments"] {
  const { topic, ranges }: Readonly<Record<string, unknown>> = isRecord(given) ? given : {};
  const written: readonly unknown[] = Array.isArray(ranges) && ranges.length === ids.length ? ranges : [];
  return {
    ...(typeof topic === "string" ? { topic } : {}),
    ranges: ids.map((id, at) => {
      const range = written[at];
      const { startId, endId }: Readonly<Record<string, unknown>> = isRecord(range) ? range : {};
      return {
        ...(typeof startId === "string" ? { startId } : {}),
        ...(typeof endId === "string" ? { endId } : {}),
        summary: `(stored as ${id})`,
      };
    }),
  };
}
