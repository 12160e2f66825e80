import { WireError } from "../../protocol/errors.ts";
import { isRecordObject } from "../pi/records.ts";

type Entry = Readonly<Record<string, unknown>>;

/** A node as pi's `get_tree` has it. */
interface TreeNode {
  readonly entry: Entry;
  readonly children: TreeNode[];
  label?: string;
  labelTimestamp?: unknown;
}

export interface EntryTree {
  readonly tree: readonly TreeNode[];
  readonly leafId: string | null;
}

/**
 * So many entries below each other are 10,000 nested values of JSON, which is what common parsers take (Go's
 * `encoding/json`).
 */
const maxTreeDepth = 5_000;

/**
 * pi's tree, made of the data of `get_entries`: pi itself fails to write one of some 2,000 entries in a row. Entries below a
 * missing parent are roots, and of entries with one id the last is meant, as in pi; what hangs on a cycle is left out. Gives the JSON as
 * well, since `JSON.stringify` fails in the same way. Throws `too_large`.
 */
export function entryTree(data: unknown): { readonly value: EntryTree; readonly text: string } {
  const { entries: given, leafId } = isRecordObject(data) ? data : {};
  const entries = Array.isArray(given) ? given.filter(isRecordObject) : [];
  const nodes = new Map<unknown, TreeNode>(entries.map((entry) => [entry["id"], { entry, children: [] }]));
  for (const { type, targetId, label, timestamp } of entries) {
    const node = type === "label" ? nodes.get(targetId) : undefined;
    if (node === undefined) continue;
    delete node.label;
    delete node.labelTimestamp;
    if (typeof label === "string" && label !== "") {
      node.label = label;
      node.labelTimestamp = timestamp;
    }
  }
  const roots: TreeNode[] = [];
  for (const node of nodes.values()) {
    const { id, parentId } = node.entry;
    const parent = parentId === null || parentId === id ? undefined : nodes.get(parentId);
    (parent?.children ?? roots).push(node);
  }
  const value = { tree: roots, leafId: typeof leafId === "string" ? leafId : null };
  return { value, text: `{"tree":${textOf(roots)},"leafId":${JSON.stringify(value.leafId)}}` };
}

/** Writes the nodes, and puts the children of each in the order of their times. */
function textOf(roots: readonly TreeNode[]): string {
  const parts: string[] = ["["];
  const levels = [{ nodes: roots, next: 0 }];
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    const node = level.nodes[level.next];
    if (node === undefined) {
      levels.pop();
      // What follows the children of a node, or the roots.
      parts.push(levels.length > 0 ? "]}" : "]");
      continue;
    }
    const { children, ...own } = node;
    children.sort((one, other) => timeOf(one) - timeOf(other));
    parts.push(level.next === 0 ? "" : ",", JSON.stringify(own).slice(0, -1), ',"children":[');
    level.next += 1;
    if (levels.length >= maxTreeDepth) {
      const why = `The session's tree has more than ${maxTreeDepth} entries below each other. session/getEntries has them in a list.`;
      throw new WireError("too_large", why, { maxTreeDepth });
    }
    levels.push({ nodes: children, next: 0 });
  }
  return parts.join("");
}

function timeOf({ entry }: TreeNode): number {
  return new Date(String(entry["timestamp"])).getTime();
}
