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

/** The tool nodes behind an anchor in their order: those of the path, and those beside it that belong to the answer. */
export function toolsBehind(tree: ContextTree, anchor: Anchor): readonly number[] {
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

/** Which tool nodes beside the path belong to the answer, where an anchor has several: those between it and the last. */
function windowOf(
  tree: ContextTree,
  { run, answer, leaf }: Anchor,
  reached: readonly number[],
): (place: number) => boolean {
  const answers = answer === undefined || reached.includes(answer) ? [...reached] : [...reached, answer];
  if (answers.length === 0 || (answers.length === 1 && answer !== undefined)) return () => true;
  const timeOf = (place: number): number => tree.at(place).timestamp;
  answers.sort((one, other) => timeOf(one) - timeOf(other) || one - other);
  if (answer !== undefined) {
    const before = answers[answers.indexOf(answer) - 1];
    const from = before === undefined ? Number.NEGATIVE_INFINITY : timeOf(before);
    return (place) => timeOf(place) > from && timeOf(place) <= timeOf(answer);
  }
  // Nothing of the path answers: what is behind the last of the other answers, or the one whose tools the path ends in.
  const end = run.includes(leaf) ? timeOf(leaf) : Number.POSITIVE_INFINITY;
  const before = answers.findLast((place) => timeOf(place) < end);
  const behind = answers.find((place) => timeOf(place) >= end);
  const from = before === undefined ? Number.NEGATIVE_INFINITY : timeOf(before);
  const to = behind === undefined ? Number.POSITIVE_INFINITY : timeOf(behind);
  return (place) => timeOf(place) > from && timeOf(place) <= to;
}
