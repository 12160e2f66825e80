import { WireError } from "../../protocol/errors.ts";
import { isRecord } from "../../protocol/objects.ts";

type Entry = Readonly<Record<string, unknown>>;

/** A node of pi's `get_tree`. */
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

/** This many nested entries are 10,000 nested JSON values, the limit of common parsers (Go's `encoding/json`). */
const maxTreeDepth = 5_000;

/**
 * Builds pi's tree from the data of `get_entries`: pi itself fails to write about 2,000 entries in a row. Entries
 * with a missing parent are roots; of entries with the same id the last counts, as in pi; cycles are omitted. Also
 * returns the JSON, because `JSON.stringify` fails in the same way. Throws `too_large`.
 */
export function entryTree(data: unknown): { readonly value: EntryTree; readonly text: string } {
  const { entries: given, leafId } = isRecord(data) ? data : {};
  const entries = Array.isArray(given) ? given.filter(isRecord) : [];
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

/** Writes the nodes, and sorts the children of each by time. */
function textOf(roots: readonly TreeNode[]): string {
  const parts: string[] = ["["];
  const levels = [{ nodes: roots, next: 0 }];
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    const node = level.nodes[level.next];
    if (node === undefined) {
      levels.pop();
      // Text after the children of a node, or after the roots.
      parts.push(levels.length > 0 ? "]}" : "]");
      continue;
    }
    const { children, ...own } = node;
    children.sort((one, other) => timeOf(one) - timeOf(other));
    parts.push(level.next === 0 ? "" : ",", JSON.stringify(own).slice(0, -1), ',"children":[');
    level.next += 1;
    if (levels.length >= maxTreeDepth) {
      const why = `The session's tree has more than ${maxTreeDepth} nested entries. session/getEntries returns them as a list.`;
      throw new WireError("too_large", why, { maxTreeDepth });
    }
    levels.push({ nodes: children, next: 0 });
  }
  return parts.join("");
}

function timeOf({ entry }: TreeNode): number {
  return new Date(String(entry["timestamp"])).getTime();
}
