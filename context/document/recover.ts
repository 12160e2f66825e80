import { nativeOf } from "./native-mark.ts";
import { type ContextTree, isTool } from "./tree.ts";

// A tree may have the tools of a turn beside its answer: both hang off the user's node, and the path to the answer
// does not lead over them.

/** A node of a path that is no tool node, with what the path says of the turn behind it. */
export interface Anchor {
  readonly place: number;
  /** The tool nodes of the path directly behind it. */
  readonly run: readonly number[];
  /** The next assistant of the path before its next user. */
  readonly answer: number | undefined;
  /** The last place of the path. */
  readonly leaf: number;
}

/** In the order in which tool nodes come: a child is never before its parent, whatever their times say. */
interface Key {
  readonly place: number;
  readonly time: number;
  readonly order: number;
  readonly visit: number;
}

interface Reached {
  readonly tools: readonly Key[];
  /** Assistants that hang off the anchor, or off its tools. */
  readonly answers: readonly number[];
}

/**
 * The tool nodes behind an anchor in their order: those of the path, and those beside it that belong to the answer. Of pi's
 * own trees the path has all: what is beside it is of another branch.
 */
export function toolsBehind(tree: ContextTree, anchor: Anchor): readonly number[] {
  if (nativeOf(tree.at(anchor.place)) !== undefined) return anchor.run;
  const onPath = new Set(anchor.run);
  const reached = reach(tree, anchor, onPath);
  const isInWindow = windowOf(tree, anchor, reached.answers);
  return reached.tools
    .filter(({ place }) => onPath.has(place) || isInWindow(place))
    .sort(byKey)
    .map(({ place }) => place);
}

/** Whether only results are looked for: of calls that end the path, or of an assistant whose turn nothing ends. */
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
 * Which tool nodes beside the path belong to the answer, where an anchor has several: those between it and the one
 * before. Of equal times the place in the document decides, and of a tool node or answers without a time the place alone.
 */
function windowOf(
  tree: ContextTree,
  { place: anchor, run, answer, leaf }: Anchor,
  reached: readonly number[],
): (place: number) => boolean {
  // Only results of its own were looked for.
  if (answer === undefined && tree.at(anchor).role !== "user") return () => true;
  const answers = answer === undefined || reached.includes(answer) ? [...reached] : [...reached, answer];
  if (answers.length === 0 || (answers.length === 1 && answer !== undefined)) return () => true;
  const isByPlace = answers.some((one) => tree.isUntimed(one));
  const order = (one: number, other: number): number =>
    isByPlace || tree.isUntimed(one) ? one - other : tree.at(one).timestamp - tree.at(other).timestamp || one - other;
  answers.sort(order);
  // Where nothing of the path answers: up to the answer whose tools the path ends in, else what is behind the last.
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
