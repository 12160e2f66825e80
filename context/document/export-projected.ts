import type { Meta } from "../../protocol/link-context.ts";
import type { ContextItem } from "./document.ts";
import type { NoteExport } from "./export-notes.ts";
import type { Imported } from "./imported.ts";
import { type Conversion, type ConvertOptions, convertEntry, isCarrier, isSystem } from "./native-entry.ts";
import { foldSystem } from "./native-system.ts";
import { projectItems } from "./projection.ts";
import { pathTo, type SessionEntry, type SessionTree } from "./session-tree.ts";
import { UnsignedCalls } from "./signed-items.ts";

/**
 * Returns what the model would see at the tree's leaf, in order. Compactions do not hide entries up to `heldThrough`.
 */
export function projectedItems(
  tree: SessionTree,
  imported: Imported,
  options: ConvertOptions,
  note: NoteExport,
  heldThrough?: string,
): readonly ContextItem[] {
  const path = pathTo(tree, tree.leaf).map((index) => tree.entries[index] as SessionEntry);
  for (let count = tree.entries.length - path.length; count > 0; count--) note("other_branch");
  const places = new Map(path.map(({ id }, place) => [id, place]));
  const newest = path.findLastIndex(({ type }) => type === "compaction");
  const isLeftOut = path.map((entry) => isCarrier(entry) || isSystem(entry) || isRoot(entry));
  const conversion: Conversion = {
    options,
    note,
    calls: new UnsignedCalls(),
    nodeIdOf: (id) => (places.has(id) ? id : undefined),
    keptFrom,
  };
  const items = path.flatMap((entry, place): readonly ContextItem[] => {
    const before = instructions(imported.systemBefore.get(entry.id) ?? []);
    if (isLeftOut[place]) {
      if (isCarrier(entry)) note("carrier");
      if (isSystem(entry) && !options.includeSystem) note("system");
      return before;
    }
    // Use entry ids until the edits that refer to them have been applied.
    return [...before, { ...convertEntry(entry, conversion), nodeId: entry.id }];
  });
  const heldEnd = (heldThrough === undefined ? undefined : places.get(heldThrough)) ?? -1;
  const isHeld = ({ nodeId = "" }: ContextItem): boolean => (places.get(nodeId) ?? path.length) <= heldEnd;
  const shown = projectItems(items, { note, isNative: () => true, isHeld }).map(named);
  const after = instructions(imported.systemAfter);
  return [...(options.includeSystem ? foldSystem(path) : []), ...shown, ...after];

  function instructions(items: readonly ContextItem[]): readonly ContextItem[] {
    if (options.includeInstructions) return items;
    for (const _ of items) note("system");
    return [];
  }

  function isRoot({ id }: SessionEntry): boolean {
    return imported.roots.has(tree.indexOf.get(id) ?? -1);
  }

  function named(item: ContextItem): ContextItem {
    return item.role === "system" || item.nodeId === undefined ? item : imported.restore(item.nodeId, item);
  }

  /** Returns the first entry from there with an item. Used only for the newest compaction. */
  function keptFrom({ id, raw }: SessionEntry): Meta {
    const end = places.get(id) ?? 0;
    if (end !== newest) return { firstKeptNodeId: null };
    const start = places.get(String(raw["firstKeptEntryId"])) ?? end;
    for (let place = start; place < end; place++) {
      if (!isLeftOut[place]) return { firstKeptNodeId: path[place]?.id };
    }
    return { firstKeptNodeId: null };
  }
}
