import type { AgentMessage } from "../../../extension/pi-types.ts";
import type { ContextEntry } from "../../parts/masking/candidates.ts";

export type AssistantMessage = Extract<AgentMessage, { role: "assistant" }>;
export type ResultMessage = Extract<AgentMessage, { role: "toolResult" }>;
export type ToolCallBlock = Extract<AssistantMessage["content"][number], { type: "toolCall" }>;

/** A message of the context and its entry. */
export interface Place<M extends AgentMessage = AgentMessage> {
  readonly entryId: string;
  /** Its place in the context. */
  readonly at: number;
  /** The stored message. */
  readonly message: M;
  /** Whether the model sees the stored message and it may be edited. */
  readonly isWhole: boolean;
}

/** A tool call in the context and its result. */
export interface Call {
  readonly tool: string;
  readonly block: ToolCallBlock;
  readonly made: Place<AssistantMessage>;
  /** Absent: not in the context. */
  readonly result?: Place<ResultMessage>;
  /** Answers of the model after the call. */
  readonly turns: number;
}

/** A shell command of the user. */
export interface Command {
  readonly at: number;
  readonly command: string;
}

export interface Calls {
  /** The oldest first. */
  readonly all: readonly Call[];
  readonly commands: readonly Command[];
}

/** `isOut`: whether an entry is hidden or must not be edited. */
export function callsOf(context: readonly ContextEntry[], isOut: (entryId: string) => boolean = () => false): Calls {
  const edited = new Set<string>();
  let after = 0;
  for (const { sourceEntry, messages } of context) {
    if (sourceEntry.type === "context_edit") edited.add(sourceEntry.targetId);
    if (messages.some(isAnswer)) after += 1;
  }
  const found = new Found();
  for (const [at, { sourceEntry, messages }] of context.entries()) {
    if (messages.some(isAnswer)) after -= 1;
    if (sourceEntry.type !== "message" || messages.length !== 1) continue;
    const { id: entryId, message } = sourceEntry;
    const place = { entryId, at, isWhole: !edited.has(entryId) && !isOut(entryId) };
    if (message.role === "assistant") found.answer({ ...place, message }, after);
    if (message.role === "toolResult") found.result({ ...place, message });
    if (message.role === "bashExecution" && message.excludeFromContext !== true)
      found.commands.push({ at, command: message.command });
  }
  return found;
}

class Found implements Calls {
  readonly all: Mutable<Call>[] = [];
  readonly commands: Command[] = [];
  /** Calls without a result. Ids can repeat. */
  readonly #open = new Map<string, Mutable<Call>[]>();

  answer(made: Place<AssistantMessage>, turns: number): void {
    const { content } = made.message;
    if (!Array.isArray(content)) return;
    for (const block of content) {
      if (block.type !== "toolCall") continue;
      const call = { tool: block.name, block, made, turns };
      this.all.push(call);
      const alike = this.#open.get(block.id);
      if (alike === undefined) this.#open.set(block.id, [call]);
      else alike.push(call);
    }
  }

  result(result: Place<ResultMessage>): void {
    const call = this.#open.get(result.message.toolCallId)?.shift();
    if (call !== undefined) call.result = result;
  }
}

function isAnswer({ role }: AgentMessage): boolean {
  return role === "assistant";
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };
