import { type ContextRoot, type EntryExtra, readContextRoot } from "./context-root.ts";
import { CONTEXT_ROOT_TYPE, type ContextItem, type ContextSource } from "./document.ts";
import type { NoteExport } from "./export-notes.ts";
import { isObject } from "./measure.ts";
import { keptObject, MAX_DATA_DEPTH, soundData } from "./native-values.ts";
import type { SessionTree } from "./session-tree.ts";

/** Levels of a root entry above what a document's item may have in a field. */
const levelsAboveItems = 8;

/** What the root entries of a session say about the entries that were written from a document. */
export interface Imported {
  /** The indexes of root entries: they are in no document themselves. */
  readonly roots: ReadonlySet<number>;
  /** Where the document comes from that the session was made of; of one that was a session's, where that one comes from. */
  readonly origin?: ContextSource;
  /** The items of the role `system`, by the id of the entry that they stand before. */
  readonly systemBefore: ReadonlyMap<string, readonly ContextItem[]>;
  /** Those behind all that was imported. */
  readonly systemBehind: readonly ContextItem[];
  /** The item as it was in the document, by what was made of it. */
  restore(entryId: string, item: ContextItem): ContextItem;
  nodeIdOf(entryId: string): string | undefined;
}

/** Reads the root entries of a session back. Only an entry without a parent is one: the daemon writes no others. */
export function readImported({ entries, parents }: SessionTree, note: NoteExport): Imported {
  const roots = new Set<number>();
  const extras = new Map<string, EntryExtra>();
  const systemBefore = new Map<string, ContextItem[]>();
  const systemBehind: ContextItem[] = [];
  let origin: ContextSource | undefined;
  for (const [index, { type, raw }] of entries.entries()) {
    if (type !== "custom" || raw["customType"] !== CONTEXT_ROOT_TYPE || parents[index] !== -1) continue;
    const data = soundData(raw["data"], MAX_DATA_DEPTH + levelsAboveItems);
    const root = readContextRoot(data);
    if (root === undefined) continue;
    if (data !== raw["data"]) note("unsound_data");
    roots.add(index);
    take(root);
  }
  return {
    roots,
    ...(origin === undefined ? {} : { origin }),
    systemBefore,
    systemBehind,
    restore: (entryId, item) => restored(item, extras.get(entryId)),
    nodeIdOf: (entryId) => extras.get(entryId)?.fields?.nodeId,
  };

  function take(root: ContextRoot): void {
    origin ??= originOf(root.source, note);
    for (const [id, extra] of Object.entries(root.entries)) extras.set(id, extra);
    for (const { before, item } of root.system ?? []) {
      const place = before === null ? systemBehind : (systemBefore.get(before) ?? []);
      place.push(item);
      if (before !== null) systemBefore.set(before, place);
    }
  }
}

function originOf(source: ContextSource | undefined, note: NoteExport): ContextSource | undefined {
  const before = source?.["origin"];
  const origin = isObject(before) && typeof before["kind"] === "string" ? before : source;
  return keptObject(origin, note) as ContextSource | undefined;
}

function restored(item: ContextItem, extra: EntryExtra | undefined): ContextItem {
  if (extra === undefined) return item;
  const { fields = {}, absent = [] } = extra;
  const meta = { ...item.meta, ...fields.meta };
  const whole = { ...item, ...fields, ...(Object.keys(meta).length > 0 ? { meta } : {}) };
  const kept = Object.entries(whole).filter(([name]) => !absent.includes(name as keyof ContextItem));
  return Object.fromEntries(kept) as unknown as ContextItem;
}
