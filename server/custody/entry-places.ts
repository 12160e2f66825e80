import { limits } from "../configuration/limits.ts";
import { headOf } from "../pi/file-mark.ts";
import { type EntryFile, type Line, LinesBackwards } from "./entry-file.ts";
import { cutEntry } from "./long-texts.ts";

const { maxFilePlacesBytes, maxPlacesBytes } = limits.transcript;
/** The memory of one place, without its ids. */
const placeBytes = 240;
/** If more was added to a file, its known places are forgotten, so that one call can still read a long entry. */
const maxAddedBytes = 1024 * 1024;
const endChunkBytes = 64 * 1024;
/** Of what a call may read, not for the search of the last line. */
const reservedBytes = 512 * 1024;

/** Where an entry is in a file, and in the tree. */
export interface EntryPlace {
  readonly id: string;
  readonly parentId: string | null;
  readonly start: number;
  readonly end: number;
}

/** Whether an id is one that clients can name. */
export function isEntryId(id: unknown): id is string {
  return typeof id === "string" && /^[!-~]{1,128}$/.test(id);
}

/** pi writes the place in the tree at the end of the entries of extensions. */
const ofExtension = '{"type":"custom';
const tailPattern = /,"id":"([^"\\]{1,128})","parentId":(?:"([^"\\]{1,128})"|null),"timestamp":"[^"\\]{1,64}"\}$/;
const tailBytes = 512;
/** Of the ends of a long line. */
const edgeBytes = 4_096;

/** The entry of a line. Undefined: it is none, or has no id that clients can name. */
export function placeIn({ start, end, bytes, head, tail }: Line): EntryPlace | undefined {
  if (head.length === 0) return undefined;
  const isOfExtension = head.toString("latin1", 0, ofExtension.length) === ofExtension;
  const found = isOfExtension
    ? tailPattern.exec(tail.toString("latin1", Math.max(0, tail.length - tailBytes)))
    : undefined;
  const { id, parentId = null } =
    found?.[1] !== undefined ? { id: found[1], parentId: found[2] } : (idsIn(bytes, head, tail) ?? {});
  return isEntryId(id) ? { id, parentId, start, end } : undefined;
}

function idsIn(bytes: Buffer | undefined, head: Buffer, tail: Buffer): Pick<EntryPlace, "id" | "parentId"> | undefined {
  if (bytes !== undefined && bytes.length <= 2 * edgeBytes) return headOf(bytes);
  // The beginning is recognised if the line ends as an entry does.
  const known = headOf(Buffer.concat([head.subarray(0, edgeBytes), tail.subarray(-edgeBytes)]));
  if (known !== undefined || bytes === undefined) return known;
  const { type, id, parentId } = cutEntry(bytes)?.entry ?? {};
  if (type === "session" || typeof id !== "string") return undefined;
  return { id, parentId: typeof parentId === "string" ? parentId : null };
}

/** The places of a file's entries from a line to the last one. */
export class EntryPlaces {
  readonly inode: number;
  /** The lines from here to `upTo` are known. */
  #from: number;
  #upTo: number;
  /** Identifies the file up to `upTo`. */
  #mark: number;
  /** The file's size when its end was read. */
  #size: number;
  /** Before the first line that was read, the last one first; and after it. */
  readonly #earlier: EntryPlace[] = [];
  readonly #later: EntryPlace[] = [];
  readonly #byId = new Map<string, EntryPlace>();
  readonly #children = new Map<string, EntryPlace[]>();
  #bytes = 4 * placeBytes;

  private constructor({ inode, size }: EntryFile, upTo: number, mark: number) {
    this.inode = inode;
    this.#size = size;
    this.#from = upTo;
    this.#upTo = upTo;
    this.#mark = mark;
  }

  /** Knows no entry yet. Nor will it, if the file ends with a line that is too long. */
  static async of(file: EntryFile): Promise<EntryPlaces> {
    const upTo = await endOfLines(file);
    return new EntryPlaces(file, upTo, await file.markAt(upTo));
  }

  get from(): number {
    return this.#from;
  }

  get upTo(): number {
    return this.#upTo;
  }

  get bytes(): number {
    return this.#bytes;
  }

  find(id: string): EntryPlace | undefined {
    return this.#byId.get(id);
  }

  /** In no order. */
  childrenOf(id: string): readonly EntryPlace[] {
    return this.#children.get(id) ?? [];
  }

  /** Whether no more lines are added. */
  get isFull(): boolean {
    return this.#bytes >= maxFilePlacesBytes;
  }

  /** Whether all lines are known. */
  get isComplete(): boolean {
    return this.#from === 0 && (this.#upTo > 0 || this.#size === 0);
  }

  /** The last entry. */
  get last(): EntryPlace | undefined {
    return this.#later.at(-1) ?? this.#earlier[0];
  }

  /** The known entries in the file's order, from one of them on. */
  *after({ start }: Pick<EntryPlace, "start">): Generator<EntryPlace> {
    for (let index = this.#earlier.length - 1; index >= 0; index -= 1) {
      const place = this.#earlier[index] as EntryPlace;
      if (place.start > start) yield place;
    }
    for (const place of this.#later) if (place.start > start) yield place;
  }

  /** Whether the file begins as it did when it was read. */
  async isOf(file: EntryFile): Promise<boolean> {
    if (file.inode !== this.inode || file.size < this.#upTo) return false;
    return (await file.markAt(this.#upTo)) === this.#mark;
  }

  /** Adds a line if it is the one before the known ones, and there is room. */
  noteBefore({ start, end }: Pick<Line, "start" | "end">, place: EntryPlace | undefined): void {
    if (end + 1 !== this.#from || this.isFull) return;
    this.#from = start;
    if (place === undefined) return;
    this.#earlier.push(place);
    // Of entries with the same id pi knows the last.
    if (!this.#byId.has(place.id)) this.#byId.set(place.id, place);
    this.#add(place);
  }

  /** Adds what was written since. Returns whether that was possible. */
  async addLater(file: EntryFile): Promise<boolean> {
    if (file.size === this.#size) return true;
    if (file.size - this.#upTo > maxAddedBytes || this.isFull) return false;
    const added: EntryPlace[] = [];
    const lines = new LinesBackwards(file, { at: file.size, end: file.size });
    let upTo: number | undefined;
    for (let line = await lines.next(); typeof line !== "string"; line = await lines.next()) {
      if (line.start < this.#upTo) break;
      // The last line may not be complete.
      if (upTo === undefined) upTo = line.start;
      else {
        const place = placeIn(line);
        if (place !== undefined) added.push(place);
      }
    }
    this.#size = file.size;
    if (upTo === undefined || upTo <= this.#upTo) return true;
    this.#upTo = upTo;
    this.#mark = await file.markAt(upTo);
    for (const place of added.reverse()) {
      this.#later.push(place);
      this.#byId.set(place.id, place);
      this.#add(place);
    }
    return true;
  }

  #add(place: EntryPlace): void {
    const { id, parentId } = place;
    this.#bytes += placeBytes + id.length + (parentId?.length ?? 0);
    if (parentId === null) return;
    const known = this.#children.get(parentId);
    if (known === undefined) this.#children.set(parentId, [place]);
    else known.push(place);
  }
}

/** The known places of all files. */
export class PlacesCache {
  /** The file that was read longest ago comes first. */
  readonly #files = new Map<string, EntryPlaces>();

  /** The places of a file up to its last complete line. What is known of it is right after this. */
  async of(file: EntryFile): Promise<EntryPlaces> {
    const known = this.#files.get(file.path);
    const isKnown = known !== undefined && (await known.isOf(file)) && (await known.addLater(file));
    const places = isKnown ? known : await EntryPlaces.of(file);
    this.#files.delete(file.path);
    this.#files.set(file.path, places);
    return places;
  }

  forget(file: Pick<EntryFile, "path">): void {
    this.#files.delete(file.path);
  }

  /** Makes room, after more places were read. */
  trim(): void {
    let bytes = 0;
    for (const places of this.#files.values()) bytes += places.bytes;
    for (const [path, places] of this.#files) {
      if (bytes <= maxPlacesBytes) return;
      this.#files.delete(path);
      bytes -= places.bytes;
    }
  }
}

/** The end of the last complete line; 0 if it is too far from the end of the file. */
async function endOfLines(file: EntryFile): Promise<number> {
  for (let end = file.size; end > 0 && file.left >= endChunkBytes + reservedBytes; ) {
    const start = Math.max(0, end - endChunkBytes);
    const found = (await file.read(start, end)).lastIndexOf(0x0a);
    if (found !== -1) return start + found + 1;
    end = start;
  }
  return 0;
}
