import type { ContextEntry } from "../../../../../context/parts/masking/candidates.ts";
import { planned } from "../../../../../context/pruning/strategies/plan.ts";
import { replacedBy } from "../../../../../context/pruning/strategies/replacement.ts";
import type { PruningOptions } from "../../../../../protocol/pruning/options.ts";
import { resolvePruning } from "../../../../../protocol/pruning/resolve.ts";
import { partial } from "../../../../helpers/partial.ts";

/** A call of a tool in its own answer, or several in one, and its result. */
export interface Step {
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
  readonly output?: string;
  readonly isError?: boolean;
  readonly signature?: string;
  /** It is made in the same answer as the call before. */
  readonly isBeside?: boolean;
}

export const long = (word: string): string => `${word} says something of its own.\n`.repeat(100);

export const read = (path: string, output: string, more: Partial<Step> = {}): Step => ({
  tool: "read",
  args: { path },
  output,
  ...more,
});
export const run = (command: string, output = "", more: Partial<Step> = {}): Step => ({
  tool: "bash",
  args: { command },
  output,
  ...more,
});
export const write = (path: string, content: string, more: Partial<Step> = {}): Step => ({
  tool: "write",
  args: { path, content },
  output: "ok",
  ...more,
});
export const edit = (path: string, more: Partial<Step> = {}): Step => ({
  tool: "edit",
  args: { path, edits: [{ oldText: "a", newText: "b" }] },
  output: "ok",
  ...more,
});

/** A context with these calls. The result of call n is the entry `tn`, its answer `an`. */
export function contextOf(steps: readonly Step[], turnsBehind = 0): ContextEntry[] {
  const entries: ContextEntry[] = [];
  const add = (id: string, message: object): void => {
    const whole = { timestamp: entries.length, ...message };
    entries.push(partial({ sourceEntry: { type: "message", id, message: whole }, messages: [whole] }));
  };
  add("u1", { role: "user", content: "Go on." });
  for (let at = 0; at < steps.length; ) {
    let end = at + 1;
    while (steps[end]?.isBeside === true) end += 1;
    const calls = steps.slice(at, end);
    add(`a${at + 1}`, {
      role: "assistant",
      content: calls.map(({ tool, args, signature }, index) => ({
        type: "toolCall",
        id: `c${at + index + 1}`,
        name: tool,
        arguments: args,
        ...(signature === undefined ? {} : { thoughtSignature: signature }),
      })),
    });
    for (const [index, { tool, output = "", isError = false }] of calls.entries()) {
      const content = [{ type: "text", text: output }];
      const n = at + index + 1;
      add(`t${n}`, { role: "toolResult", toolCallId: `c${n}`, toolName: tool, content, isError });
    }
    at = end;
  }
  for (let turn = 1; turn <= turnsBehind; turn += 1) {
    add(`later${turn}`, { role: "assistant", content: [{ type: "text", text: "Yes." }] });
  }
  return entries;
}

export interface PlanOptions {
  readonly pruning?: PruningOptions;
  readonly turnsBehind?: number;
  readonly isOut?: (entryId: string) => boolean;
}

/** The strategies' removals from these calls: the entries, and their replacements. */
export function plan(steps: readonly Step[], { pruning = {}, turnsBehind = 0, isOut = () => false }: PlanOptions = {}) {
  const context = contextOf(steps, turnsBehind);
  const removals = planned({
    context,
    config: resolvePruning({ enabled: true, ...pruning }),
    cwd: "/project",
    tokensOf: (message) => JSON.stringify(message).length / 4,
    isOut,
  });
  return removals.map((removal) => ({
    entry: removal.target.entryId,
    strategy: removal.strategy,
    content: JSON.stringify(replacedBy(removal, "r007").content),
  }));
}

export const entriesOf = (steps: readonly Step[], options?: PlanOptions): string[] =>
  plan(steps, options).map(({ entry }) => entry);
