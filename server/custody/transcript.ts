import { WireError } from "../../protocol/errors.ts";
import type { Params, Result } from "../../protocol/methods.ts";
import { limits } from "../configuration/limits.ts";
import { unlessAborted } from "../lib/deadline.ts";
import { SerialQueue } from "../lib/serial-queue.ts";
import type { SessionFileOwner } from "../pi/session-paths.ts";
import { BranchWalk } from "./branch-walk.ts";
import { EntryFile, type LinePlace, LinesBackwards, type ReadBudget } from "./entry-file.ts";
import { type EntryPlaces, PlacesCache, placeIn } from "./entry-places.ts";
import { boundaryBefore, cutEntry, type ValueRange, valueAt } from "./long-texts.ts";
import { outlineOf, outlineOfLine } from "./outline.ts";
import type { StoredEntry } from "./stored-entries.ts";
import {
  type BranchPlace,
  branchPlaceIn,
  branchPlaceText,
  changed,
  type EntryRange,
  entryRangeIn,
} from "./transcript-places.ts";

const { maxFileReadBytes, maxEntryLineBytes, maxReads } = limits.transcript;
/** Up to this much of a file is read again, so that all that follows a page is known. */
const maxReadAgainBytes = 12 * 1024 * 1024;
/** A page is read again while its session changes. */
const maxAttempts = 4;
const edgeBytes = 4_096;
/** Of an escape, or of a pair of them. */
const maxCharacterBytes = 12;
const newline = 0x0a;

/** A place in the session's log. */
export interface LogPlace {
  readonly cursor: number;
  readonly epoch: string;
  readonly openAfter?: number;
}

/** What a running pi has in memory. */
export interface Unwritten {
  /** The entries after the last one of the file. Undefined: pi does not know that one. */
  readonly entries: readonly StoredEntry[] | undefined;
  readonly leafId: string | null;
  /** Up to here, events are entries. */
  readonly at: LogPlace;
}

/** A session whose transcript is read. */
export interface TranscriptSource extends SessionFileOwner {
  /** Whether there is no file: pi has all entries. */
  readonly isEphemeral: boolean;
  /** The place in the log now. */
  readonly place: LogPlace;
  /** The entries after the one with the id, or all. Undefined: no pi is running. */
  unwritten(since: string | undefined): Promise<Unwritten | undefined>;
  /** Throws if the file is missing and should not be. */
  requireNoEntries(): void;
  /** The error if only a pi can read the file. */
  readonly olderForm: () => WireError;
  /** The session that has this file, if the daemon has it and the caller may know of it. */
  sessionOf(file: string): string | undefined;
}

type Page = Result<"transcript/page">;
type Piece = Result<"transcript/entry">;
type Outline = Result<"transcript/outline">;
type OutlineParams = Omit<Params<"transcript/outline">, "sessionId">;
type PageParams = Omit<Params<"transcript/page">, "sessionId">;
type PieceParams = Omit<Params<"transcript/entry">, "sessionId">;

/** What the end of a file was. */
interface FileEnd {
  readonly inode: number;
  /** The last complete line ends here, and the last line. */
  readonly upTo: number;
  readonly size: number;
  /** The last entry in a complete line. */
  readonly lastId: string | undefined;
  /** The last entry as pi loads the file. */
  readonly leafId: string | undefined;
  /** Whether there may be entries, and none is near the end. */
  readonly isUnknown: boolean;
  /** The file of the session from which this one was made. */
  readonly parent: string | undefined;
}

/** The ends of a session: of its file, and of what its pi has not written. */
interface Ends {
  /** Undefined: the session has no file. */
  readonly end: FileEnd | undefined;
  /** Undefined: no pi is running, or it does not know the end of the file. */
  readonly unwritten: readonly StoredEntry[] | undefined;
  readonly leafId: string | undefined;
  readonly at: LogPlace;
}

/** One of several attempts to read what changes meanwhile. */
interface Attempt {
  readonly budget: ReadBudget;
  readonly isLast: boolean;
}

interface PageReaders<P> {
  /** Undefined: another attempt is needed. */
  readonly latest: (before: BranchPlace | undefined, attempt: Attempt) => Promise<P | undefined>;
  readonly earlier: (file: EntryFile, before: WrittenPlace) => Promise<P>;
}

type WrittenPlace = BranchPlace & { readonly file: NonNullable<BranchPlace["file"]> };

/** Reads transcripts in parts. One file at a time is read. */
export class Transcripts {
  readonly #cache = new PlacesCache();
  readonly #reading = new SerialQueue({
    maxWaiting: maxReads,
    onFull: () => new WireError("overloaded", "Too many calls read session files.", { retryAfterMs: 1_000 }),
  });

  /** Throws `transcript_changed`, `entry_not_found`, `session_file_unusable`, `session_asleep` and errors of pi. */
  page(source: TranscriptSource, params: PageParams, signal: AbortSignal): Promise<Page> {
    return this.#partBefore(source, params.before, signal, {
      latest: (before, attempt) => this.#latest(source, before, params, signal, attempt),
      earlier: (file, before) => this.#fromFile(file, walkOf(before, params), before.file, []),
    });
  }

  /** Throws `transcript_changed`, `session_file_unusable`, `session_asleep` and errors of pi. */
  outline(source: TranscriptSource, params: OutlineParams, signal: AbortSignal): Promise<Outline> {
    const { limit = 500 } = params;
    return this.#partBefore(source, params.before, signal, {
      latest: (before, attempt) => this.#latestOutline(source, before?.want, limit, signal, attempt),
      earlier: (file, before) => this.#outlineIn(file, before.file, limit),
    });
  }

  /** Throws what {@link page} throws, and `too_large` for a value in an entry of which only the whole can be read. */
  async piece(source: TranscriptSource, params: PieceParams, signal: AbortSignal): Promise<Piece> {
    const budget: ReadBudget = { left: maxFileReadBytes };
    const { entryId, place } = params;
    const range = place === undefined ? undefined : entryRangeIn(place);
    const read = async (): Promise<Piece | string | undefined> =>
      await this.#pieceInFile(source, range, params, budget);
    const found = source.isEphemeral ? undefined : await this.#reading.run(read, signal);
    if (typeof found === "object") return found;
    const unwritten = await unlessAborted(source.unwritten(found), signal);
    const entry = unwritten?.entries?.find(({ id }) => id === entryId);
    if (entry !== undefined) return pieceOf(Buffer.from(JSON.stringify(entry)), params);
    throw notFound(entryId);
  }

  /** A page, from its place or from the end, which is read again while the session changes. */
  async #partBefore<P>(
    source: TranscriptSource,
    named: string | undefined,
    signal: AbortSignal,
    { latest, earlier }: PageReaders<P>,
  ): Promise<P> {
    const before = named === undefined ? undefined : branchPlaceIn(named);
    const budget: ReadBudget = { left: maxFileReadBytes };
    const place = before?.file;
    if (before !== undefined && place !== undefined) {
      const read = async (file: EntryFile | undefined): Promise<P> =>
        await earlier(await sameFile(file, place), { ...before, file: place });
      return await this.#reading.run(() => this.#open(source, budget, read), signal);
    }
    for (let attempt = 1; ; attempt += 1) {
      const isLast = attempt === maxAttempts || budget.left < maxFileReadBytes / 2;
      const page = await latest(before, { budget, isLast });
      if (page !== undefined) return page;
      if (isLast) throw changed();
    }
  }

  /** Undefined: the file was rewritten in the meantime, or, but for the last attempt, the session has changed. */
  async #latest(
    source: TranscriptSource,
    before: BranchPlace | undefined,
    params: PageParams,
    signal: AbortSignal,
    attempt: Attempt,
  ): Promise<Page | undefined> {
    const found = await this.#endsOf(source, signal, attempt);
    if (found === undefined) return undefined;
    const { end, unwritten, leafId } = found;
    const named = before?.want ?? params.leafId;
    const want = named ?? leafId;
    const at = before === undefined ? found.at : {};
    if (want === undefined && (unwritten !== undefined || end?.isUnknown !== true)) {
      return { entries: [], branchPoints: [], leafId: null, ...at };
    }
    const place = before ?? { want, child: undefined, leafId: undefined, isNamed: named !== undefined };
    const walk = walkOf(place, params);
    if (!walk.takeUnwritten(unwritten ?? [])) {
      return { ...pageOf(walk, walk.next(undefined), walk.branchPoints(undefined, unwritten ?? [])), ...at };
    }
    if (end === undefined) {
      // The parent of the first entry is missing.
      if (walk.isEmpty && named !== undefined) throw notFound(named);
      return { ...pageOf(walk, undefined, walk.branchPoints(undefined, unwritten ?? [])), ...at };
    }
    return await this.#before(source, { ...found, end }, signal, attempt, async (file, from) => ({
      ...(await this.#fromFile(file, walk, from, unwritten ?? [])),
      ...at,
    }));
  }

  /** As {@link #latest}. `want`: the last entry of the page, which pi had not written. */
  async #latestOutline(
    source: TranscriptSource,
    want: string | undefined,
    limit: number,
    signal: AbortSignal,
    attempt: Attempt,
  ): Promise<Outline | undefined> {
    const found = await this.#endsOf(source, signal, attempt);
    if (found === undefined) return undefined;
    const { end, unwritten: entries = [], leafId } = found;
    const wanted = want === undefined ? entries.length - 1 : entries.findIndex(({ id }) => id === want);
    // It is in the file by now, perhaps after other entries: the client reads all of it again.
    if (want !== undefined && wanted === -1) throw changed();
    const first = Math.max(0, wanted + 1 - limit);
    const told = entries.slice(first, wanted + 1).flatMap((entry) => outlineOf(entry) ?? []);
    const parent = end?.parent === undefined ? {} : { parent: parentOf(source.sessionOf(end.parent)) };
    const head = want === undefined ? { leafId: leafId ?? null, ...parent } : {};
    const next = entries[first - 1]?.["id"];
    if (typeof next === "string") {
      const place = { want: next, child: undefined, leafId: undefined, isNamed: false, file: undefined };
      return { entries: told, before: branchPlaceText(place), ...head };
    }
    if (end === undefined) return { entries: told, ...head };
    return await this.#before(source, { ...found, end }, signal, attempt, async (file, from) => {
      const page = await this.#outlineIn(file, from, limit - told.length);
      return { ...page, entries: [...page.entries, ...told], ...head };
    });
  }

  /** Undefined: the session has changed in the meantime. */
  async #endsOf(source: TranscriptSource, signal: AbortSignal, { budget, isLast }: Attempt): Promise<Ends | undefined> {
    const start = source.place;
    const end = source.isEphemeral ? undefined : await this.#reading.run(() => this.#endOf(source, budget), signal);
    const isAsked = end?.isUnknown !== true;
    const pi = isAsked ? await unlessAborted(source.unwritten(end?.lastId), signal) : undefined;
    // Of what is in the file, events with later numbers would be told again.
    if (pi === undefined && source.place.cursor !== start.cursor && !isLast) return undefined;
    if (pi === undefined && end === undefined) source.requireNoEntries();
    const at = pi?.at ?? start;
    return pi?.entries === undefined
      ? { end, unwritten: undefined, leafId: end?.leafId, at }
      : { end, unwritten: pi.entries, leafId: pi.leafId ?? undefined, at };
  }

  /** Reads the file up to its end. Undefined: it was rewritten in the meantime. */
  async #before<P>(
    source: TranscriptSource,
    { end, unwritten }: Ends & { readonly end: FileEnd },
    signal: AbortSignal,
    { budget }: Attempt,
    use: (file: EntryFile, from: LinePlace) => Promise<P>,
  ): Promise<P | undefined> {
    const at = unwritten === undefined ? end.size : end.upTo;
    const read = async (file: EntryFile | undefined): Promise<P | undefined> =>
      file?.inode !== end.inode || file.size < end.size ? undefined : await use(file, { at, end: at });
    return await this.#reading.run(() => this.#open(source, budget, read), signal);
  }

  async #outlineIn(file: EntryFile, from: LinePlace, limit: number): Promise<Outline> {
    const places = await this.#cache.of(file);
    const lines = new LinesBackwards(file, from);
    /** The last one first. */
    const entries: Outline["entries"] = [];
    let isOver = false;
    while (entries.length < limit && !isOver) {
      const line = await lines.next();
      if (line === "unread") break;
      isOver = line === "start";
      if (line === "start") break;
      const found = placeIn(line);
      places.noteBefore(line, found);
      const entry = found && outlineOfLine(line, found);
      if (entry !== undefined) entries.push(entry);
    }
    this.#cache.trim();
    const { at, end } = lines.place;
    if (isOver || end === 0) return { entries: entries.reverse() };
    const mark = { at, end, inode: file.inode, mark: await file.markAt(end) };
    const place = { want: undefined, child: undefined, leafId: undefined, isNamed: false, file: mark };
    return { entries: entries.reverse(), before: branchPlaceText(place) };
  }

  async #fromFile(
    file: EntryFile,
    walk: BranchWalk,
    from: { readonly at: number; readonly end: number },
    unwritten: readonly StoredEntry[],
  ): Promise<Page> {
    const places = await this.#cache.of(file);
    await readTo(file, places, from.end);
    const at = await walk.takeWritten(file, places, from);
    this.#cache.trim();
    if (walk.isNamedMissing) throw notFound(walk.want ?? "");
    const next =
      at === undefined ? undefined : walk.next({ ...at, inode: file.inode, mark: await file.markAt(at.end) });
    return pageOf(walk, next, walk.branchPoints(places, unwritten));
  }

  async #endOf(source: TranscriptSource, budget: ReadBudget): Promise<FileEnd | undefined> {
    return await this.#open(source, budget, async (file) => {
      if (file === undefined) return undefined;
      const { inode, size } = file;
      const places = await this.#cache.of(file);
      const { upTo } = places;
      const lines = linesBefore(file, places.from);
      while (places.last === undefined) {
        const line = await lines.next();
        if (typeof line === "string") break;
        places.noteBefore(line, placeIn(line));
      }
      const lastId = places.last?.id;
      const last = upTo < size ? await new LinesBackwards(file, { at: size, end: size }).next() : "start";
      const isWhole = typeof last !== "string" && last.bytes !== undefined && cutEntry(last.bytes) !== undefined;
      const leafId = (isWhole ? placeIn(last)?.id : undefined) ?? lastId;
      const isUnknown = leafId === undefined && !places.isComplete;
      return { inode, size, upTo, lastId, leafId, isUnknown, parent: file.parent };
    });
  }

  async #pieceInFile(
    source: TranscriptSource,
    range: EntryRange | undefined,
    params: PieceParams,
    budget: ReadBudget,
  ): Promise<Piece | string | undefined> {
    return await this.#open(source, budget, async (file) => {
      if (file === undefined) return undefined;
      const { entryId } = params;
      if (range !== undefined) {
        if (range.inode !== file.inode || range.end > file.size) throw changed();
        return await pieceAt(file, range, params);
      }
      const places = await this.#cache.of(file);
      const known = places.find(entryId);
      if (known !== undefined) return await pieceAt(file, known, params);
      const lines = linesBefore(file, places.from);
      for (let line = await lines.next(); typeof line !== "string"; line = await lines.next()) {
        const found = placeIn(line);
        places.noteBefore(line, found);
        if (found?.id === entryId && line.bytes !== undefined) return pieceOf(line.bytes, params);
        if (found?.id === entryId) return await pieceAt(file, found, params);
      }
      this.#cache.trim();
      return places.last?.id;
    });
  }

  async #open<T>(
    source: TranscriptSource,
    budget: ReadBudget,
    use: (file: EntryFile | undefined) => Promise<T>,
  ): Promise<T> {
    const file = await EntryFile.open(source, budget);
    if (file === "file_older_form") throw source.olderForm();
    if (file === "missing") return await use(undefined);
    try {
      return await use(file);
    } finally {
      await file.close();
    }
  }
}

/** The file of a place. Throws `transcript_changed` if it is another one by now. */
async function sameFile(
  file: EntryFile | undefined,
  { inode, end, mark }: NonNullable<BranchPlace["file"]>,
): Promise<EntryFile> {
  if (file?.inode !== inode || file.size < end || (await file.markAt(end)) !== mark) throw changed();
  return file;
}

function parentOf(sessionId: string | undefined): NonNullable<Outline["parent"]> {
  return sessionId === undefined ? {} : { sessionId };
}

/** Reads the lines after a place that are not known, if they are few. */
async function readTo(file: EntryFile, places: EntryPlaces, end: number): Promise<void> {
  if (places.isFull || places.from <= end + 1 || places.from - end > maxReadAgainBytes) return;
  const lines = linesBefore(file, places.from);
  for (let line = await lines.next(); typeof line !== "string"; line = await lines.next()) {
    places.noteBefore(line, placeIn(line));
    if (places.isFull || line.start <= end + 1) return;
  }
}

/** The lines before one that begins at `start`. */
function linesBefore(file: EntryFile, start: number): LinesBackwards {
  const end = Math.max(0, start - 1);
  return new LinesBackwards(file, { at: end, end });
}

function walkOf(place: Omit<BranchPlace, "file">, { limit = 50, maxBytes = 1_048_576 }: PageParams): BranchWalk {
  return new BranchWalk({ place, maxEntries: limit, maxBytes });
}

function pageOf(walk: BranchWalk, next: BranchPlace | undefined, branchPoints: Page["branchPoints"]): Page {
  const { entries, cuts } = walk.walked;
  return {
    entries: entries as Page["entries"],
    ...(cuts.length > 0 && { cuts: [...cuts] }),
    ...(branchPoints !== undefined && { branchPoints }),
    ...(next !== undefined && { before: branchPlaceText(next) }),
    leafId: walk.leafId,
  };
}

/** A piece of an entry at a known place in its file. */
async function pieceAt(
  file: EntryFile,
  { start, end }: Omit<EntryRange, "inode">,
  params: PieceParams,
): Promise<Piece> {
  const { entryId, path = "", offset = 0, length = 262_144 } = params;
  if (end - start <= maxEntryLineBytes) {
    const bytes = await lineAt(file, start, end);
    if (placeIn({ start, end, bytes, head: bytes, tail: bytes })?.id !== entryId) throw changed();
    return pieceOf(bytes, params);
  }
  const [head, tail] = [await file.read(start, start + edgeBytes), await file.read(end - edgeBytes, end)];
  if (placeIn({ start, end, bytes: undefined, head, tail })?.id !== entryId) throw changed();
  if (path !== "") {
    const why = `The entry has ${end - start} bytes, and values are read in entries of at most ${maxEntryLineBytes}.`;
    throw new WireError("too_large", why, { bytes: end - start, maxEntryLineBytes });
  }
  const from = start + Math.min(offset, end - start);
  // The bytes after the piece show whether it ends within a character.
  const bytes = await file.read(from, Math.min(end, from + length + maxCharacterBytes));
  const piece = pieceFrom(bytes, { start: 0, end: bytes.length, isString: false }, { offset: 0, length });
  const next = from - start + (piece.next ?? bytes.length);
  return { text: piece.text, bytes: end - start, ...(next < end - start && { next }) };
}

function pieceOf(line: Buffer, { path = "", offset = 0, length = 262_144 }: PieceParams): Piece {
  const range = valueAt(line, path);
  if (range === undefined) throw invalid("path", "does not lead to a value of the entry");
  return pieceFrom(line, range, { offset, length });
}

function pieceFrom(
  bytes: Buffer,
  { start, end, isString }: ValueRange,
  { offset, length }: { readonly offset: number; readonly length: number },
): Piece {
  if (offset > end - start) throw invalid("offset", "is after the end of the value");
  const from = start + offset;
  const limit = from + length;
  const to = limit >= end ? end : boundaryBefore(bytes, from, limit);
  const text = bytes.toString("utf8", from, to);
  return { text: isString ? unescaped(text) : text, bytes: end - start, ...(to < end && { next: to - start }) };
}

function unescaped(text: string): string {
  try {
    return String(JSON.parse(`"${text}"`));
  } catch {
    throw invalid("offset", "is not where an earlier piece has ended");
  }
}

/** The line between two places. Throws `transcript_changed` if there is none. */
async function lineAt(file: EntryFile, start: number, end: number): Promise<Buffer> {
  const bytes = await file.read(Math.max(0, start - 1), end);
  const line = start === 0 ? bytes : bytes.subarray(1);
  if ((start > 0 && bytes[0] !== newline) || line.includes(newline)) throw changed();
  return line;
}

function notFound(entryId: string): WireError {
  return new WireError("entry_not_found", `The entry ${entryId} was not found in the session.`, { entryId });
}

function invalid(param: string, message: string): WireError {
  const findings = [{ path: `/${param}`, message }];
  return new WireError("invalid_params", `There is no such piece: the ${param} ${message}.`, { findings });
}
