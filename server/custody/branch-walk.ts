import type { BranchPoint, TranscriptCut } from "../../protocol/transcript-methods.ts";
import { limits } from "../configuration/limits.ts";
import { type EntryFile, type LinePlace, LinesBackwards } from "./entry-file.ts";
import { type EntryPlace, type EntryPlaces, isEntryId, placeIn } from "./entry-places.ts";
import { type CutEntry, cutLine } from "./long-texts.ts";
import type { StoredEntry } from "./stored-entries.ts";
import { type BranchPlace, changed, entryRangeText } from "./transcript-places.ts";

const { maxBranchChildren } = limits.transcript;

export interface BranchWalkOptions {
  /** Where the walk begins. */
  readonly place: Omit<BranchPlace, "file">;
  /** At most so many entries. */
  readonly maxEntries: number;
  /** Of entries as JSON; the first one may be longer. */
  readonly maxBytes: number;
}

/** What a walk has collected, in the order of the branch. */
export interface WalkedEntries {
  readonly entries: readonly StoredEntry[];
  readonly cuts: readonly TranscriptCut[];
}

/** Collects the entries of one branch, from its end backwards: those that pi has not written, then those of its file. */
export class BranchWalk {
  /** The last one first. */
  readonly #entries: StoredEntry[] = [];
  readonly #cuts: (readonly TranscriptCut[])[] = [];
  readonly #left: { entries: number; bytes: number };
  #want: string | undefined;
  #child: string | undefined;
  #leafId: string | undefined;
  #isNamed: boolean;
  #isLast: boolean;
  #isOver = false;
  /** Where the first of the entries is in the file. */
  #firstStart: number | undefined;
  /** The later child of each entry on the branch. */
  readonly #childOf = new Map<string, string | undefined>();

  constructor({ place: { want, child, leafId, isNamed }, maxEntries, maxBytes }: BranchWalkOptions) {
    this.#want = want;
    this.#child = child;
    this.#leafId = leafId;
    this.#isNamed = isNamed;
    // Without a wanted entry, the last one of the file begins the branch.
    this.#isLast = want === undefined;
    this.#left = { entries: maxEntries, bytes: maxBytes };
  }

  get walked(): WalkedEntries {
    return { entries: this.#entries.toReversed(), cuts: this.#cuts.toReversed().flat() };
  }

  get leafId(): string | null {
    return this.#leafId ?? null;
  }

  /** The next entry, if the walk has not come to the beginning of the branch. */
  get want(): string | undefined {
    return this.#want;
  }

  /** Where the next page begins; undefined at the beginning of the branch. */
  next(file: BranchPlace["file"]): BranchPlace | undefined {
    if (this.#isOver || (this.#want === undefined && !this.#isLast)) return undefined;
    return { want: this.#want, child: this.#child, leafId: this.#leafId, isNamed: this.#isNamed, file };
  }

  get isEmpty(): boolean {
    return this.#entries.length === 0;
  }

  /** Takes entries that pi has in memory. Returns whether the walk goes on in the file. */
  takeUnwritten(entries: readonly StoredEntry[]): boolean {
    const byId = new Map(entries.map((entry) => [entry["id"], entry]));
    while (this.#want !== undefined) {
      const entry = byId.get(this.#want);
      const cut = entry && unwrittenEntry(entry, this.#want);
      if (cut === undefined) return true;
      // Parents may form a cycle.
      byId.delete(this.#want);
      if (!this.#take(cut, undefined)) return false;
    }
    return this.#isLast;
  }

  /**
   * Takes entries of the file, from a place backwards. Returns where to go on; undefined where the branch begins. Throws
   * `transcript_changed`. What is read on the way is added to the known places.
   */
  async takeWritten(file: EntryFile, places: EntryPlaces, from: LinePlace): Promise<LinePlace | undefined> {
    const lines = new LinesBackwards(file, from);
    while (this.#want !== undefined || this.#isLast) {
      if (this.#left.entries === 0) return lines.place;
      const known = this.#skip(lines, places);
      const { place } = lines;
      const line = await lines.next();
      if (line === "unread") return lines.place;
      if (line === "start") break;
      const found = placeIn(line);
      places.noteBefore(line, found);
      if (known?.start === line.start && known.id !== found?.id) throw changed();
      if (found === undefined || (found.id !== this.#want && !this.#isLast)) continue;
      const cut = asEntry(cutLine(line, found), found.id);
      // pi skips a line that is not JSON.
      if (cut !== undefined && !this.#take(cut, { ...found, inode: file.inode })) return place;
    }
    this.#isOver = true;
    return undefined;
  }

  /** Whether the entry that a client has named was not found. */
  get isNamedMissing(): boolean {
    return this.#isNamed && this.#isOver;
  }

  /**
   * Entries with children on other branches. Undefined: not all that follows the entries is known. `unwritten`: what pi
   * has not written.
   */
  branchPoints(places: EntryPlaces | undefined, unwritten: readonly StoredEntry[]): BranchPoint[] | undefined {
    const first = this.#firstStart;
    if (first !== undefined && (places === undefined || places.from > first)) return undefined;
    const later: Pick<EntryPlace, "id" | "parentId">[] = unwritten.flatMap(({ id, parentId }) =>
      isEntryId(id) && places?.find(id) === undefined ? [{ id, parentId: isEntryId(parentId) ? parentId : null }] : [],
    );
    const children = new Map<string, { entryId: string; leafId: string }>();
    const points: BranchPoint[] = [];
    let start = Number.POSITIVE_INFINITY;
    for (const { id } of this.#entries.toReversed()) {
      const written = [...(places?.childrenOf(String(id)) ?? [])].sort((one, other) => one.start - other.start);
      const others = [...written, ...later.filter(({ parentId }) => parentId === id)].filter(
        (child) => child.id !== this.#childOf.get(String(id)),
      );
      for (const child of others.slice(0, maxBranchChildren - children.size)) {
        children.set(child.id, { entryId: child.id, leafId: child.id });
        start = Math.min(start, written[0]?.start ?? start);
      }
      const shown = others.flatMap((child) => children.get(child.id) ?? []);
      if (shown.length > 0) points.push({ entryId: String(id), children: shown });
    }
    if (children.size === 0) return points;
    // Each entry belongs to the branch of its parent; the last one in the file ends it.
    const owners = new Map<string | null, { leafId: string }>();
    const written = Number.isFinite(start) ? (places?.after({ start: start - 1 }) ?? []) : [];
    for (const { id, parentId } of [...written, ...later]) {
      const owner = children.get(id) ?? owners.get(parentId);
      if (owner === undefined) continue;
      owners.set(id, owner);
      owner.leafId = id;
    }
    return points;
  }

  /** Skips lines of other branches. Returns the known place of the next entry. */
  #skip(lines: LinesBackwards, places: EntryPlaces): EntryPlace | undefined {
    if (this.#want === undefined) return undefined;
    const { end } = lines.place;
    const known = places.find(this.#want);
    if (known !== undefined && known.end <= end) {
      lines.skipTo(known.end);
      return known;
    }
    // It is before all known lines.
    if (known === undefined && places.from > 0 && places.from <= end && end <= places.upTo)
      lines.skipTo(places.from - 1);
    return undefined;
  }

  /** Returns false, and takes nothing, if the page is full. */
  #take({ entry, cuts, bytes }: CutEntry, range: (EntryPlace & { readonly inode: number }) | undefined): boolean {
    const { entries, bytes: bytesLeft } = this.#left;
    if (entries === 0 || (bytes > bytesLeft && this.#entries.length > 0)) return false;
    const id = String(entry["id"]);
    const place = range === undefined ? {} : { place: entryRangeText(range) };
    this.#entries.push(entry);
    this.#cuts.push(cuts.map((cut) => ({ entryId: id, ...cut, ...place })));
    this.#left.entries -= 1;
    this.#left.bytes -= bytes;
    if (range !== undefined) this.#firstStart = range.start;
    this.#childOf.set(id, this.#child);
    this.#child = id;
    this.#leafId ??= id;
    this.#isNamed = false;
    this.#isLast = false;
    const { parentId } = entry;
    this.#want = isEntryId(parentId) ? parentId : undefined;
    return true;
  }
}

/** An entry that pi has in memory, without what is long. */
function unwrittenEntry(entry: StoredEntry, id: string): CutEntry | undefined {
  const bytes = Buffer.from(JSON.stringify(entry));
  const { parentId } = entry;
  const known = { id, parentId: isEntryId(parentId) ? parentId : null };
  return asEntry(cutLine({ start: 0, end: bytes.length, bytes, head: bytes, tail: bytes }, known), id);
}

/** Undefined: it is not an entry with this id. */
function asEntry(cut: CutEntry | undefined, wanted: string): CutEntry | undefined {
  if (cut === undefined) return undefined;
  const { type, id, parentId } = cut.entry;
  if (typeof type !== "string" || id !== wanted) return undefined;
  return typeof parentId === "string" || parentId === null ? cut : { ...cut, entry: { ...cut.entry, parentId: null } };
}
