import { WireError } from "../../protocol/errors.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { NoteExport } from "./export-notes.ts";
import type { Loose } from "./measure.ts";
import { isTime } from "./read-entry.ts";

/** An entry of a pi session. Only these fields are validated. */
export interface SessionEntry {
  readonly id: string;
  readonly type: string;
  /** Unix milliseconds. If the entry has none, 1 ms after the previous entry. */
  readonly timestamp: number;
  readonly raw: Loose;
}

/** A session's entries as a forest: links lead to existing entries, without cycles. */
export interface SessionTree {
  /** In file order. Of entries with the same id only the last, as in pi. */
  readonly entries: readonly SessionEntry[];
  /** Index of each entry's parent; -1: none. */
  readonly parents: Int32Array;
  /** Index by id. */
  readonly indexOf: ReadonlyMap<string, number>;
  /** Index of the leaf; -1 if there are no entries. */
  readonly leaf: number;
  /** The session's id, if it has a header. */
  readonly sessionId?: string;
}

/**
 * Reads the untrusted entries of a session: invalid ones are left out, a dangling link ends a path, as in pi, and a
 * link that would close a cycle is cut. `leafId`: the session's leaf, by default the last entry, as in pi. Throws
 * `entry_not_found` for an unknown leaf.
 */
export function readSessionTree(values: readonly unknown[], leafId: string | undefined, note: NoteExport): SessionTree {
  const { read, header } = readAll(values, note);
  const indexOf = new Map<string, number>();
  const entries: SessionEntry[] = [];
  const links: (string | null)[] = [];
  const last = new Map(read.map(({ entry }, index) => [entry.id, index]));
  for (const [index, { entry, parentId }] of read.entries()) {
    if (last.get(entry.id) !== index) {
      note("duplicate_entry");
      continue;
    }
    indexOf.set(entry.id, entries.length);
    entries.push(entry);
    links.push(parentId);
  }
  const leaf = leafId === undefined ? entries.length - 1 : indexOf.get(leafId);
  if (leaf === undefined) {
    throw new WireError("entry_not_found", `Entry "${excerpt(leafId ?? "")}" is not in this session.`);
  }
  const parents = parentsOf(links, indexOf, note);
  cutCycles(parents, leaf, note);
  const sessionId = header?.["id"];
  return { entries, parents, indexOf, leaf, ...(typeof sessionId === "string" ? { sessionId } : {}) };
}

/** Returns the indexes from the root to an entry. */
export function pathTo(tree: SessionTree, leaf: number): readonly number[] {
  const path: number[] = [];
  for (let index = leaf; index >= 0; index = tree.parents[index] ?? -1) path.push(index);
  return path.reverse();
}

interface ReadEntry {
  readonly entry: SessionEntry;
  readonly parentId: string | null;
}

function readAll(
  values: readonly unknown[],
  note: NoteExport,
): { readonly read: readonly ReadEntry[]; readonly header: Loose | undefined } {
  const header = values.find((value) => isRecord(value) && value["type"] === "session") as Loose | undefined;
  const isChain = header !== undefined && isFirstVersion(header["version"]);
  const read: ReadEntry[] = [];
  let before = 0;
  for (const [index, value] of values.entries()) {
    if (isRecord(value) && value["type"] === "session") continue;
    const raw = isChain && isRecord(value) ? withIds(value, index) : value;
    const entry = isRecord(raw) ? entryOf(raw, before + 1) : undefined;
    if (entry === undefined) {
      note("unreadable_entry");
      continue;
    }
    const named = entry.raw["parentId"];
    const parentId = isChain ? read.at(-1)?.entry.id : typeof named === "string" && named !== "" ? named : null;
    read.push({ entry, parentId: parentId ?? null });
    before = entry.timestamp;
  }
  return { read, header };
}

/**
 * Whether a file has version 1, without ids and links: each entry follows the previous one, and compactions count
 * lines.
 */
function isFirstVersion(version: unknown): boolean {
  return version === undefined || (typeof version === "number" && version < 2);
}

function withIds(raw: Loose, index: number): Loose {
  const { firstKeptEntryIndex: kept } = raw;
  return { ...raw, id: `line-${index}`, ...(typeof kept === "number" ? { firstKeptEntryId: `line-${kept}` } : {}) };
}

function entryOf(raw: Loose, otherwise: number): SessionEntry | undefined {
  const { id, type } = raw;
  if (typeof id !== "string" || id === "" || typeof type !== "string") return undefined;
  return { id, type, timestamp: timeOf(raw["timestamp"]) ?? otherwise, raw };
}

/** Reads Unix milliseconds or a date text; `undefined` if invalid. */
export function timeOf(value: unknown): number | undefined {
  const time = typeof value === "string" ? Date.parse(value) : value;
  return isTime(time) ? time : undefined;
}

function parentsOf(
  links: readonly (string | null)[],
  indexOf: ReadonlyMap<string, number>,
  note: NoteExport,
): Int32Array {
  const parents = new Int32Array(links.length).fill(-1);
  for (const [index, link] of links.entries()) {
    if (link === null) continue;
    const parent = indexOf.get(link);
    if (parent === undefined) note("missing_parent");
    else parents[index] = parent;
  }
  return parents;
}

/** Cuts cycles. Starts at the leaf, so that its path stays as long as possible. Visits each entry once. */
function cutCycles(parents: Int32Array, leaf: number, note: NoteExport): void {
  const walks = new Int32Array(parents.length);
  const walkUp = (start: number, walk: number): void => {
    for (let index = start; index >= 0 && walks[index] === 0; ) {
      walks[index] = walk;
      const parent = parents[index] ?? -1;
      if (parent >= 0 && walks[parent] === walk) {
        parents[index] = -1;
        note("cycle");
        return;
      }
      index = parent;
    }
  };
  walkUp(leaf, 1);
  for (let index = 0; index < parents.length; index++) walkUp(index, index + 2);
}

function excerpt(text: string): string {
  return text.length <= 64 ? text : `${text.slice(0, 64)}…`;
}
