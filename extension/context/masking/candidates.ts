import type { AgentMessage, SessionEntry } from "../../pi-types.ts";
import { fromBlocks, type ImageBlock } from "../recall/content.ts";

/** What an entry contributes to the context, after edits. */
export interface ContextEntry {
  readonly sourceEntry: SessionEntry;
  readonly messages: readonly AgentMessage[];
}

type OutputMessage = Extract<AgentMessage, { role: "toolResult" | "bashExecution" }>;

/** An output in the context: the result of a tool, or of a command that a person has run. */
export interface Output {
  readonly entryId: string;
  readonly message: OutputMessage;
  readonly tool: string;
  /** The call's arguments. Absent: the call is not in the context. */
  readonly args?: unknown;
  readonly text: string;
  readonly images: readonly ImageBlock[];
  readonly isError: boolean;
  /** Tokens of all outputs behind it. */
  readonly newer: number;
  /** Answers of the model behind it, and messages of the user. */
  readonly turns: number;
  readonly userTurns: number;
  readonly tokens: number;
  /** Its place in the context. */
  readonly at: number;
}

/**
 * The outputs that are in the context as they were written, the oldest first. A turn is the model's: in a run of sixty calls
 * behind one message of the user all but the newest are old.
 */
export function outputsOf(context: readonly ContextEntry[], tokensOf: (message: AgentMessage) => number): Output[] {
  const calls = callsOf(context);
  const edited = new Set(
    context.flatMap(({ sourceEntry: one }) => (one.type === "context_edit" ? [one.targetId] : [])),
  );
  const found: Output[] = [];
  let turns = 0;
  let userTurns = 0;
  let newer = 0;
  for (let at = context.length - 1; at >= 0; at -= 1) {
    const { sourceEntry, messages } = context[at] as ContextEntry;
    for (const message of messages) {
      if (message.role === "assistant") turns += 1;
      if (message.role === "user") userTurns += 1;
      const said = saidIn(message);
      if (said === undefined) continue;
      const tokens = tokensOf(message);
      // pi names a person's command itself.
      const args = said.message.role === "toolResult" ? calls.get(said.message.toolCallId) : undefined;
      if (sourceEntry.type === "message" && messages.length === 1 && !edited.has(sourceEntry.id)) {
        found.push({ entryId: sourceEntry.id, ...said, args, newer, turns, userTurns, tokens, at });
      }
      newer += tokens;
    }
  }
  return found.reverse();
}

/** Which outputs may go. */
export interface MaskingRules {
  readonly afterTurns: number;
  readonly afterUserTurns: number | null;
  /** The newest outputs of so many tokens stay. */
  readonly protectTokens: number;
  readonly errors: "keep" | "mask";
  readonly excludeTools: readonly string[];
}

export function isCandidate(output: Output, rules: MaskingRules): boolean {
  if (output.turns < rules.afterTurns || output.newer < rules.protectTokens) return false;
  if (rules.afterUserTurns !== null && output.userTurns < rules.afterUserTurns) return false;
  if (output.isError && rules.errors === "keep") return false;
  return !rules.excludeTools.includes(output.tool);
}

function saidIn(message: AgentMessage): Pick<Output, "message" | "tool" | "text" | "images" | "isError"> | undefined {
  if (message.role === "toolResult") {
    const { toolName, isError, content } = message;
    return { message, tool: toolName, isError, ...fromBlocks(content) };
  }
  if (message.role !== "bashExecution" || message.excludeFromContext === true) return undefined;
  const { output: text, exitCode = 0, cancelled } = message;
  return { message, tool: "bash", text, images: [], isError: cancelled || exitCode !== 0 };
}

function callsOf(context: readonly ContextEntry[]): ReadonlyMap<string, unknown> {
  const calls = new Map<string, unknown>();
  for (const { messages } of context) {
    for (const message of messages) {
      if (message.role !== "assistant") continue;
      for (const block of message.content) if (block.type === "toolCall") calls.set(block.id, block.arguments);
    }
  }
  return calls;
}
