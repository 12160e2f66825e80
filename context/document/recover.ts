import { nativeOf } from "./native-mark.ts";
import { type ContextTree, isTool } from "./tree.ts";

// In some trees the tools of a turn and its answer are siblings below the user's node, so the path to the answer does
// not include the tools.

/** A node of a path other than a tool node, with the turn that follows it on the path. */
export interface Anchor {
  readonly place: number;
  /** Tool nodes of the path directly after it. */
  readonly run: readonly number[];
  /** Next assistant on the path before the next user. */
  readonly answer: number | undefined;
  /** Last position of the path. */
  readonly leaf: number;
}

/** Sort key of tool nodes: a child is never before its parent, regardless of times. */
interface Key {
  readonly place: number;
  readonly time: number;
  readonly order: number;
  readonly visit: number;
}

interface Reached {
  readonly tools: readonly Key[];
  /** Assistants below the anchor or its tools. */
  readonly answers: readonly number[];
}

/**
 * Returns the tool nodes after an anchor, in order: those on the path, and siblings that belong to the answer. In pi's
 * own trees siblings belong to other branches.
 */
export function toolsAfter(tree: ContextTree, anchor: Anchor): readonly number[] {
  if (nativeOf(tree.at(anchor.place)) !== undefined) return anchor.run;
  const onPath = new Set(anchor.run);
  const reached = reach(tree, anchor, onPath);
  const isInWindow = windowOf(tree, anchor, reached.answers);
  return reached.tools
    .filter(({ place }) => onPath.has(place) || isInWindow(place))
    .sort(byKey)
    .map(({ place }) => place);
}

/** Whether only results are searched: of calls at the end of the path, or of an assistant whose turn has no end. */
function takesResultsOnly(tree: ContextTree, { place, leaf, answer }: Anchor, from: number): boolean {
  if (from === leaf) return tree.at(from).role !== "user";
  return from === place && answer === undefined && tree.at(from).role !== "user";
}

function reach(tree: ContextTree, anchor: Anchor, onPath: ReadonlySet<number>): Reached {
  const tools: Key[] = [];
  const answers: number[] = [];
  const root: Key = { place: anchor.place, time: Number.NEGATIVE_INFINITY, order: -1, visit: 0 };
  const open: { readonly key: Key; readonly resultsOnly: boolean }[] = [{ key: root, resultsOnly: false }];
  let visit = 0;
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { key } = next;
    const resultsOnly = next.resultsOnly || takesResultsOnly(tree, anchor, key.place);
    const takesResults = !resultsOnly || mayHaveResults(tree, key.place);
    for (const place of tree.followers(key.place)) {
      const node = tree.at(place);
      if (!isTool(node)) answers.push(place);
      else if (!resultsOnly || (takesResults && node.role === "toolResult") || onPath.has(place)) {
        visit += 1;
        const child = keyBehind(key, { place, time: node.timestamp, order: place, visit });
        tools.push(child);
        open.push({ key: child, resultsOnly });
      }
    }
  }
  return { tools, answers };
}

function mayHaveResults(tree: ContextTree, place: number): boolean {
  const node = tree.at(place);
  return isTool(node) || (node.role === "assistant" && (node.toolCalls !== undefined || node.blocks !== undefined));
}

function keyBehind(parent: Key, own: Key): Key {
  const isLater = own.time > parent.time || (own.time === parent.time && own.order > parent.order);
  return isLater ? own : { ...own, time: parent.time, order: parent.order };
}

function byKey(one: Key, other: Key): number {
  return one.time - other.time || one.order - other.order || one.visit - other.visit;
}

/**
 * Selects the siblings that belong to the answer if an anchor has several answers: those after the previous answer and
 * before this one. Document order decides for equal or missing times.
 */
function windowOf(
  tree: ContextTree,
  { place: anchor, run, answer, leaf }: Anchor,
  reached: readonly number[],
): (place: number) => boolean {
  // Only its own results were searched.
  if (answer === undefined && tree.at(anchor).role !== "user") return () => true;
  const answers = answer === undefined || reached.includes(answer) ? [...reached] : [...reached, answer];
  if (answers.length === 0 || (answers.length === 1 && answer !== undefined)) return () => true;
  const isByPlace = answers.some((one) => tree.isUntimed(one));
  const order = (one: number, other: number): number =>
    isByPlace || tree.isUntimed(one) ? one - other : tree.at(one).timestamp - tree.at(other).timestamp || one - other;
  answers.sort(order);
  // Without an answer on the path: up to the answer whose tools end the path, otherwise after the last answer.
  const end = answer ?? (run.includes(leaf) ? leaf : undefined);
  const to = end === undefined ? undefined : answers.find((place) => order(place, end) >= 0);
  const from = end === undefined ? answers.at(-1) : answers.findLast((place) => order(place, end) < 0);
  const isLast = to === answers.at(-1);
  const isBeforeEnd = (place: number, last: number): boolean =>
    isLast
      ? isByPlace || tree.isUntimed(place) || tree.at(place).timestamp <= tree.at(last).timestamp
      : order(place, last) < 0;
  return (place) => (from === undefined || order(place, from) > 0) && (to === undefined || isBeforeEnd(place, to));
}
