import { CONTEXT_ROOT_TYPE } from "../../protocol/link.ts";
import { isRecord } from "../../protocol/objects.ts";
import { type ContextRoot, type EntryExtra, readContextRoot } from "./context-root.ts";
import type { ContextItem, ContextSource } from "./document.ts";
import type { NoteExport } from "./export-notes.ts";
import { keptObject, MAX_DATA_DEPTH, soundData } from "./native-values.ts";
import type { SessionTree } from "./session-tree.ts";

/** Nesting levels of a root entry above the fields of a document's item. */
const levelsAboveItems = 8;

/** Data from a session's root entries about entries that were written from a document. */
export interface Imported {
  /** Indexes of the root entries, which are not exported themselves. */
  readonly roots: ReadonlySet<number>;
  /** Source of the imported document; if that was exported from a session, the source of that session. */
  readonly origin?: ContextSource;
  /** `system` items by the id of the following entry. */
  readonly systemBefore: ReadonlyMap<string, readonly ContextItem[]>;
  /** `system` items after all imported entries. */
  readonly systemAfter: readonly ContextItem[];
  /** Restores the original item of the document from the item of its entry. */
  restore(entryId: string, item: ContextItem): ContextItem;
  nodeIdOf(entryId: string): string | undefined;
}

/** Reads the root entries of a session. Only entries without a parent count, because the daemon writes no others. */
export function readImported({ entries, parents }: SessionTree, note: NoteExport): Imported {
  const roots = new Set<number>();
  const extras = new Map<string, EntryExtra>();
  const systemBefore = new Map<string, ContextItem[]>();
  const systemAfter: ContextItem[] = [];
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
    systemAfter,
    restore: (entryId, item) => restored(item, extras.get(entryId)),
    nodeIdOf: (entryId) => extras.get(entryId)?.fields?.nodeId,
  };

  function take(root: ContextRoot): void {
    origin ??= originOf(root.source, note);
    for (const [id, extra] of Object.entries(root.entries)) extras.set(id, extra);
    for (const { before, item } of root.system ?? []) {
      const place = before === null ? systemAfter : (systemBefore.get(before) ?? []);
      place.push(item);
      if (before !== null) systemBefore.set(before, place);
    }
  }
}

function originOf(source: ContextSource | undefined, note: NoteExport): ContextSource | undefined {
  const before = source?.["origin"];
  const origin = isRecord(before) && typeof before["kind"] === "string" ? before : source;
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
