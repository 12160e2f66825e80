import { type ContextRoot, type EntryExtra, readContextRoot } from "./context-root.ts";
import { CONTEXT_ROOT_TYPE, type ContextItem } from "./document.ts";
import { MAX_DATA_DEPTH, soundData } from "./native-values.ts";
import type { SessionTree } from "./session-tree.ts";

/** Levels of a root entry above what a document's item may have in a field. */
const levelsAboveItems = 8;

/** What the root entries of a session say about the entries that were written from a document. */
export interface Imported {
  /** The indexes of root entries: they are in no document themselves. */
  readonly roots: ReadonlySet<number>;
  /** The items of the role `system`, by the id of the entry that they stand before. */
  readonly systemBefore: ReadonlyMap<string, readonly ContextItem[]>;
  /** Those behind all that was imported. */
  readonly systemBehind: readonly ContextItem[];
  /** The item as it was in the document, by what was made of it. */
  restore(entryId: string, item: ContextItem): ContextItem;
  nodeIdOf(entryId: string): string | undefined;
}

/** Reads the root entries of a session back. Only an entry without a parent is one: the daemon writes no others. */
export function readImported({ entries, parents }: SessionTree): Imported {
  const roots = new Set<number>();
  const extras = new Map<string, EntryExtra>();
  const systemBefore = new Map<string, ContextItem[]>();
  const systemBehind: ContextItem[] = [];
  for (const [index, { type, raw }] of entries.entries()) {
    if (type !== "custom" || raw["customType"] !== CONTEXT_ROOT_TYPE || parents[index] !== -1) continue;
    const root = readContextRoot(soundData(raw["data"], MAX_DATA_DEPTH + levelsAboveItems));
    if (root === undefined) continue;
    roots.add(index);
    take(root);
  }
  return {
    roots,
    systemBefore,
    systemBehind,
    restore: (entryId, item) => restored(item, extras.get(entryId)),
    nodeIdOf: (entryId) => extras.get(entryId)?.fields?.nodeId,
  };

  function take(root: ContextRoot): void {
    for (const [id, extra] of Object.entries(root.entries)) extras.set(id, extra);
    for (const { before, item } of root.system ?? []) {
      const place = before === null ? systemBehind : (systemBefore.get(before) ?? []);
      place.push(item);
      if (before !== null) systemBefore.set(before, place);
    }
  }
}

function restored(item: ContextItem, extra: EntryExtra | undefined): ContextItem {
  if (extra === undefined) return item;
  const { fields = {}, absent = [] } = extra;
  const meta = { ...item.meta, ...fields.meta };
  const whole = { ...item, ...fields, ...(Object.keys(meta).length > 0 ? { meta } : {}) };
  const kept = Object.entries(whole).filter(([name]) => !absent.includes(name as keyof ContextItem));
  return Object.fromEntries(kept) as unknown as ContextItem;
}
