import type { AgentMessage, SessionEntry } from "../../../extension/pi-types.ts";
import { fromBlocks, type ImageBlock } from "../recall/content.ts";

/** An entry's messages in the context, after edits. */
export interface ContextEntry {
  readonly sourceEntry: SessionEntry;
  readonly messages: readonly AgentMessage[];
}

/** Index of the last answer: entries before it were in the last request, and so in the cache. -1: none. */
export function cachedUntil(context: readonly ContextEntry[]): number {
  return context.findLastIndex(({ messages }) => messages.some(({ role }) => role === "assistant"));
}

type OutputMessage = Extract<AgentMessage, { role: "toolResult" | "bashExecution" }>;

/** An output in the context: of a tool, or of a command of the user. */
export interface Output {
  readonly entryId: string;
  readonly message: OutputMessage;
  readonly tool: string;
  /** The call's arguments. Absent: the call is not in the context. */
  readonly args?: unknown;
  readonly text: string;
  readonly images: readonly ImageBlock[];
  readonly isError: boolean;
  /** Tokens of all later outputs. */
  readonly newer: number;
  /** Later answers of the model, and later messages of the user. */
  readonly turns: number;
  readonly userTurns: number;
  readonly tokens: number;
  /** Its index in the context. */
  readonly at: number;
}

/** The facts of an output without its text. */
export type OutputFacts = Omit<Output, "args" | "text" | "images">;

/**
 * Returns the unedited outputs in the context, oldest first. A turn is an answer of the model: in a run of sixty calls
 * after one message of the user, all but the newest are old. `isWanted`: the texts of other outputs are not read.
 */
export function outputsOf(
  context: readonly ContextEntry[],
  tokensOf: (message: AgentMessage) => number,
  isWanted: (facts: OutputFacts) => boolean = () => true,
): Output[] {
  const edited = editedIn(context);
  const found: Output[] = [];
  const calls = new Calls();
  let turns = 0;
  let userTurns = 0;
  let newer = 0;
  for (let at = context.length - 1; at >= 0; at -= 1) {
    const { sourceEntry, messages } = context[at] as ContextEntry;
    const isWhole = sourceEntry.type === "message" && messages.length === 1 && !edited.has(sourceEntry.id);
    for (const message of messages) {
      if (message.role === "user") userTurns += 1;
      if (message.role === "assistant") {
        turns += 1;
        calls.made(message);
      }
      if (!isOutput(message)) continue;
      const tokens = tokensOf(message);
      if (isWhole) {
        const tool = message.role === "toolResult" ? message.toolName : "bash";
        const isError = hasFailed(message);
        const facts = { entryId: sourceEntry.id, message, tool, isError, newer, turns, userTurns, tokens, at };
        if (isWanted(facts)) found.push(calls.wanted({ ...facts, ...saidIn(message) }));
      }
      newer += tokens;
    }
  }
  return found.reverse();
}

/** Finds the calls of outputs while the context is read backwards. */
class Calls {
  readonly #open = new Map<string, { args?: unknown }[]>();

  /** Returns the output, which gets its arguments when its call is reached. pi names a user's command itself. */
  wanted(output: Output): Output {
    if (output.message.role !== "toolResult") return output;
    const { toolCallId } = output.message;
    const called: Output & { args?: unknown } = output;
    const alike = this.#open.get(toolCallId);
    if (alike === undefined) this.#open.set(toolCallId, [called]);
    else alike.push(called);
    return called;
  }

  made({ content }: Extract<AgentMessage, { role: "assistant" }>): void {
    if (this.#open.size === 0) return;
    for (const block of content) {
      if (block.type !== "toolCall") continue;
      for (const output of this.#open.get(block.id) ?? []) output.args = block.arguments;
      this.#open.delete(block.id);
    }
  }
}

/** The rules that select outputs to mask. */
export interface MaskingRules {
  readonly afterTurns: number;
  readonly afterUserTurns: number | null;
  /** Tokens of the newest outputs that are kept. */
  readonly protectTokens: number;
  readonly errors: "keep" | "mask";
  readonly excludeTools: readonly string[];
}

export function isCandidate(output: OutputFacts, rules: MaskingRules): boolean {
  if (output.turns < rules.afterTurns || output.newer < rules.protectTokens) return false;
  if (rules.afterUserTurns !== null && output.userTurns < rules.afterUserTurns) return false;
  if (output.isError && rules.errors === "keep") return false;
  return !rules.excludeTools.includes(output.tool);
}

function isOutput(message: AgentMessage): message is OutputMessage {
  return message.role === "toolResult" || (message.role === "bashExecution" && message.excludeFromContext !== true);
}

function hasFailed(message: OutputMessage): boolean {
  if (message.role === "toolResult") return message.isError;
  const { exitCode = 0, cancelled } = message;
  return cancelled || exitCode !== 0;
}

function saidIn(message: OutputMessage): Pick<Output, "text" | "images"> {
  return message.role === "toolResult" ? fromBlocks(message.content) : { text: message.output, images: [] };
}

function editedIn(context: readonly ContextEntry[]): ReadonlySet<string> {
  const edited = new Set<string>();
  for (const { sourceEntry: one } of context) if (one.type === "context_edit") edited.add(one.targetId);
  return edited;
}
