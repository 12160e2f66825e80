import type { CompressCall } from "../../../../../context/pruning/compress/call.ts";
import { type Resolution, type ResolveRules, resolve } from "../../../../../context/pruning/compress/resolve.ts";
import { type View, type ViewEntry, viewOf } from "../../../../../context/pruning/compress/view.ts";
import type { Block, BlockState, BlockTree, Usage } from "../../../../../context/pruning/pruning-services.ts";
import type { Segment } from "../../../../../context/pruning/record.ts";
import type { AgentMessage } from "../../../../../extension/pi-types.ts";

/** `u`: a user, `a`: an answer, `t2`: an answer with two calls and their results, `s`: a compaction's summary, `c`: an answer with the call of compress. */
export type Shape = string;

interface Staged {
  readonly shapes: readonly Shape[];
  readonly blocks?: readonly Block[];
  /** Instead of one of `blocks`. */
  readonly tree?: BlockTree;
  readonly usage?: Usage;
  readonly pending?: readonly string[];
  readonly tokens?: number;
  /** Ids that were assigned to messages outside the context. */
  readonly gone?: readonly string[];
}

const ownCallId = "own";

/** A context of these messages of 100 tokens each. Users and results have the ids m001 and up, answers have none. */
export function stage({
  shapes,
  blocks = [],
  tree = treeOf(blocks),
  usage,
  pending = [],
  tokens = 100,
  gone = [],
}: Staged): View {
  const entries: ViewEntry[] = [];
  const ids = new Map<string, string>(gone.map((id) => [`gone-${id}`, id]));
  let number = 0;
  const add = (message: object, isTagged: boolean): void => {
    const id = `e${entries.length}`;
    entries.push({ sourceEntry: { id }, messages: [message as AgentMessage] });
    if (isTagged) ids.set(id, `m${String(++number).padStart(3, "0")}`);
  };
  const answer = (...calls: readonly string[]): void => {
    const content = calls.map((id) => ({ type: "toolCall", id, name: "read", arguments: { path: `${id}.ts` } }));
    add({ role: "assistant", content: [{ type: "text", text: "I look." }, ...content] }, false);
  };
  for (const shape of shapes) {
    if (shape === "u") add({ role: "user", content: `Question ${number + 1}.` }, true);
    else if (shape === "a") answer();
    else if (shape === "c") answer(ownCallId);
    else if (shape === "s") add({ role: "compactionSummary", summary: "Before." }, false);
    else if (shape === "br") add({ role: "branchSummary", summary: "Elsewhere." }, false);
    else {
      const calls = Array.from({ length: Number(shape.slice(1)) }, (_, at) => `call-${number + at}`);
      answer(...calls);
      for (const toolCallId of calls) {
        const content = [{ type: "text", text: `Output of ${toolCallId}` }];
        add({ role: "toolResult", toolCallId, toolName: "read", content, isError: false }, true);
      }
    }
  }
  const entryOf = (id: string): string | undefined => [...ids].find(([, given]) => given === id)?.[0];
  return viewOf({
    entries,
    idOf: (entryId) => ids.get(entryId),
    entryOf,
    newestId: number === 0 ? undefined : `m${String(number).padStart(3, "0")}`,
    tree,
    tokensOf: () => tokens,
    isPending: (entryId) => pending.includes(ids.get(entryId) ?? ""),
    usage,
    callId: ownCallId,
  });
}

export function block(id: string, entries: readonly number[], state: BlockState = { kind: "active" }): Block {
  const entryIds = entries.map((at) => `e${at}`);
  return {
    id,
    topic: `Topic of ${id}`,
    state,
    entryId: `entry-of-${id}`,
    firstEntryId: entryIds[0] ?? "",
    lastEntryId: entryIds.at(-1) ?? "",
    entryIds,
    children: [],
    body: [{ text: `Summary of ${id}.` }],
    kept: [],
    tokensBefore: 100 * entries.length,
    tokensAfter: 50,
  };
}

function treeOf(all: readonly Block[]): BlockTree {
  const active = all.filter(({ state }) => state.kind === "active");
  const find = (id: string): Block | undefined => all.find((one) => one.id === id);
  const over = (entryId: string): Block | undefined => active.find(({ entryIds }) => entryIds.includes(entryId));
  return { all, active, find, over, holder: () => active[0], hinders: () => undefined };
}

export const rules: ResolveRules = {
  placeholders: "strict",
  minRangeTokens: 200,
  minSavings: 0.2,
  protectRecentTurns: 1,
  mostKept: 1_000,
  keptOf: () => [],
  tokensOf: (_topic, segments) =>
    segments.reduce((sum, segment) => sum + ("text" in segment ? Math.ceil(segment.text.length / 4) : 0), 0),
};

export const half: Usage = { tokens: 50_000, window: 100_000, share: 0.5, max: 0.6, min: 0.4 };

export type Asked = readonly [startId: string, endId: string, summary?: string];

export function call(...ranges: readonly Asked[]): CompressCall {
  return {
    topic: "Looking around",
    ranges: ranges.map(([startId, endId, summary = "What was found."]) => ({ startId, endId, summary })),
  };
}

function problemsOf(resolution: Resolution): readonly string[] {
  return resolution.kind === "refused" ? resolution.problems : [];
}

export function problems(view: View, asked: CompressCall, changed: Partial<ResolveRules> = {}): readonly string[] {
  return problemsOf(resolve(asked, view, { ...rules, ...changed }));
}

export function textOf(body: readonly Segment[]): string {
  return body.map((segment) => ("text" in segment ? segment.text : `<${segment.block}>`)).join("");
}
