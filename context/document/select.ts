import { type ContextLimits, hardContextLimits } from "../../protocol/context-limits.ts";
import type { ContextDocument, ContextItem, ContextNode, NoteRepair } from "./document.ts";
import { contextInvalid, contextTooLarge, quoted } from "./faults.ts";
import { ItemList, noteFlaws, OpenCalls } from "./item-list.ts";
import { asRead, flawsOf } from "./read-document.ts";
import { toolsAfter } from "./recover.ts";
import { ContextTree, isTool } from "./tree.ts";

export interface SelectOptions {
  /**
   * `before` excludes the named node, because its text is sent as the prompt. Default: `before` for a user's node,
   * otherwise `through`.
   */
  readonly until?: "before" | "through" | undefined;
  /** Receives the faults of the selected nodes. */
  readonly note?: NoteRepair;
  /** Default: the maximum that a configuration can set. */
  readonly limits?: ContextLimits;
}

/**
 * Returns the items of the path to a node, in order: the conversation up to there, with the calls and results next to
 * the path. Nothing is flattened. Default of `nodeId`: the document's `leafId`; the whole document if it has items.
 *
 * `document` is a result of `readDocument`, or input for it. Throws the errors of `readDocument`; `context_invalid`
 * with `unknown_node`, `missing_parent`, `cycle` or `nothing_selected`; `context_too_large`.
 */
export function contextForStructured(
  document: unknown,
  nodeId?: string,
  options: SelectOptions = {},
): readonly ContextItem[] {
  const { limits = hardContextLimits, note = () => {} } = options;
  const read = asRead(document, limits);
  const select = read.nodes === undefined ? selectItems : selectNodes;
  const items = select(read, nodeId, { ...options, limits, note });
  if (items.length === 0) {
    throw contextInvalid("nothing_selected", "The selection is empty.", nodeId);
  }
  const { maxItems: limit } = limits;
  if (items.length > limit) {
    const key = "context.maxItems";
    throw contextTooLarge({ what: "The context", unit: "items", count: items.length, limit, key });
  }
  return items;
}

type Settled = SelectOptions & Required<Pick<SelectOptions, "note" | "limits">>;

function selectNodes(document: ContextDocument, named: string | undefined, options: Settled): readonly ContextItem[] {
  const nodeId = named ?? document.leafId;
  if (nodeId === undefined) {
    throw contextInvalid("nothing_selected", 'The document has no "leafId": name the node with "nodeId".');
  }
  const flaws = flawsOf(document);
  const tree = new ContextTree(document.nodes ?? [], (node) => flaws?.get(node)?.badTimestamp === true);
  const path = tree.pathTo(nodeId);
  const leaf = tree.at(path.at(-1) ?? 0);
  const leavesOut = leafIsLeftOut(leaf.role, options.until);
  const list = new ItemList(options.limits, (node) => tree.parentOf(node));
  const take = (node: ContextNode): void => {
    if (leavesOut && node === leaf) return;
    noteFlaws(flaws?.get(node), 0, node.id, options.note);
    list.add(node);
  };
  walk(tree, path, leavesOut, take, options.note);
  return list.finish();
}

function leafIsLeftOut(role: ContextNode["role"], until: SelectOptions["until"]): boolean {
  return (until ?? (role === "user" ? "before" : "through")) === "before";
}

/** Collects the nodes of a path, each followed by its tool nodes. */
function walk(
  tree: ContextTree,
  path: readonly number[],
  leavesLeafOut: boolean,
  take: (node: ContextNode) => void,
  note: NoteRepair,
): void {
  const answers = answersOf(tree, path);
  const leaf = path.at(-1) ?? -1;
  let index = 0;
  // A path can begin with tool nodes, which have no anchor.
  for (; index < path.length && isTool(tree.at(path[index] ?? -1)); index += 1) take(tree.at(path[index] ?? -1));
  while (index < path.length) {
    const place = path[index] ?? -1;
    const node = tree.at(place);
    const answer = answers[index];
    const run = runAfter(tree, path, index);
    index += 1 + run.length;
    take(node);
    if (leavesLeafOut && place === leaf) return;
    const isUnfinished = node.role === "user" && answer === undefined;
    for (const tool of toolsAfter(tree, { place, run, answer, leaf })) {
      const found = tree.at(tool);
      take(found);
      if (isUnfinished && !(leavesLeafOut && tool === leaf)) noteUnfinished(found, note);
    }
  }
}

/** Tool nodes of a path directly after a position. */
function runAfter(tree: ContextTree, path: readonly number[], index: number): readonly number[] {
  let end = index + 1;
  while (end < path.length && isTool(tree.at(path[end] ?? -1))) end += 1;
  return path.slice(index + 1, end);
}

function noteUnfinished({ id }: ContextNode, note: NoteRepair): void {
  note({ code: "orphan_tool_node", nodeId: id, detail: `Node ${quoted(id)} belongs to a turn without an answer.` });
}

/** Returns, for each node of a path, the next assistant before the next user. */
function answersOf(tree: ContextTree, path: readonly number[]): readonly (number | undefined)[] {
  const answers: (number | undefined)[] = new Array(path.length).fill(undefined);
  let answer: number | undefined;
  for (let index = path.length - 1; index >= 0; index -= 1) {
    answers[index] = answer;
    const { role } = tree.at(path[index] ?? -1);
    if (role === "assistant") answer = path[index];
    else if (role === "user") answer = undefined;
  }
  return answers;
}

function selectItems(document: ContextDocument, nodeId: string | undefined, options: Settled): readonly ContextItem[] {
  const items = document.items ?? [];
  const flaws = flawsOf(document);
  const open = new OpenCalls();
  return items.slice(0, endOf(items, nodeId, options)).map((item, index) => {
    noteFlaws(flaws?.get(item), index, item.nodeId, options.note);
    for (const call of item.toolCalls ?? []) open.add(call);
    if (item.role !== "toolResult") return item;
    const toolCallId = open.answer(item.toolCallId, item.toolName);
    if (toolCallId === undefined || toolCallId === item.toolCallId) return item;
    return { ...item, toolCallId };
  });
}

function endOf(items: readonly ContextItem[], nodeId: string | undefined, { until }: Settled): number {
  if (nodeId === undefined) return until === "before" ? items.length - 1 : items.length;
  const last = items.findLastIndex((item) => item.nodeId === nodeId);
  const found = items[last];
  if (found === undefined)
    throw contextInvalid("unknown_node", `Node ${quoted(nodeId)} is not in the document.`, nodeId);
  return leafIsLeftOut(found.role, until) ? last : last + 1;
}
