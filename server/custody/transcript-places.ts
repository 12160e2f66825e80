import { WireError } from "../../protocol/errors.ts";
import type { SessionAge } from "../core/session-record.ts";
import type { LinePlace } from "./entry-file.ts";
import { isEntryId } from "./entry-places.ts";
import type { FilePlace } from "./search/file-search.ts";

/** Where a page of a branch goes on. */
export interface BranchPlace {
  /** The next entry. Undefined: the last entry of the file. */
  readonly want: string | undefined;
  /** Its child on the branch. */
  readonly child: string | undefined;
  /** The last entry of the branch; undefined until it is found. */
  readonly leafId: string | undefined;
  /** Whether a client has named the next entry, so that it may not exist. */
  readonly isNamed: boolean;
  /** Where the file is read on. Undefined: pi had not written the next entry. */
  readonly file: (LinePlace & FileMark) | undefined;
}

/** Recognises the file. */
interface FileMark {
  readonly inode: number;
  /** Of its content up to `end`. */
  readonly mark: number;
}

/** Where an entry is in a file. */
export interface EntryRange {
  readonly start: number;
  readonly end: number;
  readonly inode: number;
}

export function branchPlaceText({ want, child, leafId, isNamed, file }: BranchPlace): string {
  const ids = [want ?? null, child ?? null, leafId ?? null, isNamed ? 1 : 0];
  return textOf(file === undefined ? ids : [...ids, file.at, file.end, file.inode, file.mark]);
}

/** Throws `invalid_params`. */
export function branchPlaceIn(text: string): BranchPlace {
  const [want, child, leafId, isNamed, ...numbers] = valuesIn(text) ?? [];
  const ids = [want, child, leafId].map((id) => (id === null ? undefined : id));
  const [at, end, inode, mark] = numbers;
  const isInFile = isNumber(at) && isNumber(end) && at <= end && isNumber(inode) && isNumber(mark);
  const isComplete = numbers.length === 0 ? isEntryId(want) : isInFile && numbers.length === 4;
  if (!isComplete || ids.some((id) => id !== undefined && !isEntryId(id))) throw notOurs("before");
  return {
    want: ids[0] as string | undefined,
    child: ids[1] as string | undefined,
    leafId: ids[2] as string | undefined,
    isNamed: isNamed === 1,
    file: isInFile ? { at, end, inode, mark } : undefined,
  };
}

export function entryRangeText({ start, end, inode }: EntryRange): string {
  return textOf([start, end, inode]);
}

/** Throws `invalid_params`. */
export function entryRangeIn(text: string): EntryRange {
  const [start, end, inode, ...others] = valuesIn(text) ?? [];
  if (!isNumber(start) || !isNumber(end) || !isNumber(inode) || start >= end || others.length > 0) {
    throw notOurs("place");
  }
  return { start, end, inode };
}

/** Where a search goes on: with this session or, if it was closed, the one after it. */
export interface SearchPlace extends SessionAge {
  /** Undefined: at the end of the session's file. */
  readonly file: FilePlace | undefined;
}

export function searchPlaceText({ createdAt, sessionId, file }: SearchPlace): string {
  const session = [createdAt, sessionId];
  if (file === undefined) return textOf(session);
  const { at, end, inode, mark, want } = file;
  return textOf([...session, at, end, inode, mark, want === undefined ? 0 : want]);
}

/** Throws `invalid_params`. */
export function searchPlaceIn(text: string): SearchPlace {
  const [createdAt, sessionId, ...inFile] = valuesIn(text) ?? [];
  if (!isNumber(createdAt) || typeof sessionId !== "string") throw notOurs("before");
  if (inFile.length === 0) return { createdAt, sessionId, file: undefined };
  const [at, end, inode, mark, want] = inFile;
  const isInFile = isNumber(at) && isNumber(end) && at <= end && isNumber(inode) && isNumber(mark);
  if (!isInFile || inFile.length !== 5 || !(want === 0 || want === null || isEntryId(want))) throw notOurs("before");
  return { createdAt, sessionId, file: { at, end, inode, mark, want: want === 0 ? undefined : want } };
}

/** The params are known, but the file is not as it was. */
export function changed(): WireError {
  return new WireError(
    "transcript_changed",
    "The session's file was rewritten since it was read. Read the transcript again from its end.",
  );
}

function textOf(values: readonly unknown[]): string {
  return Buffer.from(JSON.stringify(values)).toString("base64url");
}

function valuesIn(text: string): readonly unknown[] | undefined {
  try {
    const values: unknown = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
    return Array.isArray(values) ? values : undefined;
  } catch {
    return undefined;
  }
}

function isNumber(value: unknown): value is number {
  return Number.isInteger(value) && Number(value) >= 0;
}

function notOurs(param: string): WireError {
  const findings = [{ path: `/${param}`, message: "is not a place that an earlier answer has named" }];
  return new WireError("invalid_params", "The place was not named by an earlier answer.", { findings });
}
