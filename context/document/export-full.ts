import type { Meta } from "../../protocol/link-context.ts";
import type { ContextDocument, ContextItem, ContextNode } from "./document.ts";
import type { NoteExport } from "./export-notes.ts";
import type { Imported } from "./imported.ts";
import { type Conversion, type ConvertOptions, convertEntry, isCarrier, isSystem } from "./native-entry.ts";
import type { SessionEntry, SessionTree } from "./session-tree.ts";
import { UnsignedCalls } from "./signed-items.ts";

/**
 * Exports the whole tree: each included entry becomes a node. Children of an omitted entry are attached to its nearest
 * included ancestor.
 */
export function fullNodes(
  tree: SessionTree,
  imported: Imported,
  options: ConvertOptions,
  note: NoteExport,
): Pick<ContextDocument, "nodes" | "leafId"> {
  const isLeftOut = tree.entries.map((entry, index) => leavesOut(entry, index));
  const above = shownAncestors(tree, isLeftOut);
  const names = nodeNames(tree, imported);
  const instructions = systemNodes(tree, imported);
  const system = options.includeInstructions ? instructions : [];
  for (let count = instructions.length - system.length; count > 0; count--) note("system");
  const conversion: Conversion = {
    options,
    note,
    calls: new UnsignedCalls(),
    nodeIdOf: (id) => nameOf(tree.indexOf.get(id)),
    keptFrom,
  };
  const nodes: ContextNode[] = [...system];
  for (const [index, entry] of tree.entries.entries()) {
    if (isLeftOut[index]) continue;
    const { nodeId: _, ...item } = imported.restore(entry.id, convertEntry(entry, conversion));
    nodes.push({ ...item, id: names[index] ?? entry.id, parentId: parentOf(index) });
  }
  const leafId = isLeftOut[tree.leaf] ? parentOf(tree.leaf) : nameOf(tree.leaf);
  return { nodes, ...(leafId === undefined || leafId === null ? {} : { leafId }) };

  function leavesOut(entry: SessionEntry, index: number): boolean {
    if (imported.roots.has(index)) return true;
    if (isCarrier(entry)) note("carrier");
    else if (isSystem(entry) && !options.includeSystem) note("system");
    else return false;
    return true;
  }

  function nameOf(index: number | undefined): string | undefined {
    return index === undefined ? undefined : names[index];
  }

  function parentOf(index: number): string | null {
    const parent = above[index] ?? -1;
    if (parent >= 0) return nameOf(parent) ?? null;
    return imported.roots.has(-2 - parent) ? (system.at(-1)?.id ?? null) : null;
  }

  /** Kept from the entry on, or after its ancestor if the entry has no node; `null`: nothing, or all. */
  function keptFrom({ id, raw }: SessionEntry): Meta {
    const { firstKeptEntryId } = raw;
    const index = typeof firstKeptEntryId === "string" ? tree.indexOf.get(firstKeptEntryId) : undefined;
    if (index === undefined || firstKeptEntryId === id) return { firstKeptNodeId: null };
    return isLeftOut[index] ? { keptBehindNodeId: parentOf(index) } : { firstKeptNodeId: nameOf(index) ?? null };
  }
}

/**
 * Returns, for each entry, the nearest ancestor with a node. Without one: -1, or -2 minus the index of the topmost
 * entry. Follows each link at most twice.
 */
function shownAncestors({ parents }: SessionTree, isLeftOut: readonly boolean[]): Int32Array {
  const open = Number.MIN_SAFE_INTEGER;
  const above = new Array<number>(parents.length).fill(open);
  for (let start = 0; start < parents.length; start++) {
    const walk: number[] = [];
    let index = start;
    let found = open;
    while (found === open) {
      walk.push(index);
      const parent = parents[index] ?? -1;
      if (parent < 0) found = isLeftOut[index] ? -2 - index : -1;
      else if (!isLeftOut[parent]) found = parent;
      else if (above[parent] !== open) found = above[parent] ?? -1;
      index = parent;
    }
    for (const passed of walk) above[passed] = found;
  }
  return Int32Array.from(above);
}

/** Ids of the nodes in the imported document, unless they name another entry here. */
function nodeNames({ entries }: SessionTree, imported: Imported): readonly string[] {
  const taken = new Set(entries.map(({ id }) => id));
  return entries.map(({ id }) => {
    const name = imported.nodeIdOf(id);
    if (name === undefined || taken.has(name)) return id;
    taken.add(name);
    return name;
  });
}

/** The system items of the imported documents, as a chain before all other nodes. */
function systemNodes({ entries }: SessionTree, imported: Imported): readonly ContextNode[] {
  const taken = new Set(entries.map(({ id }) => id));
  const items: readonly ContextItem[] = [...[...imported.systemBefore.values()].flat(), ...imported.systemAfter];
  let parentId: string | null = null;
  return items.map(({ nodeId, ...item }, index) => {
    let id: string = nodeId === undefined || taken.has(nodeId) ? `system-${index + 1}` : nodeId;
    while (taken.has(id)) id = `${id}-`;
    taken.add(id);
    const node: ContextNode = { ...item, id, parentId };
    parentId = id;
    return node;
  });
}
