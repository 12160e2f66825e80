import { type FileHandle, stat } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { JsonlSplitter } from "../../protocol/jsonl.ts";
import { NAVIGATED_TYPE } from "../../protocol/link.ts";
import { isRecord } from "../../protocol/objects.ts";
import { openSessionFile } from "./open-file.ts";
import { parseBounded } from "./structure.ts";

/** The state of a session file when it was last read, to detect changes cheaply. */
export interface FileMark {
  /** Bytes; also 0 without a file. */
  readonly size: number;
  readonly inode: number;
  readonly mtimeMs: number;
  /** Complete lines were read up to this offset. */
  readonly read: number;
  /** CRC-32 of the last bytes before that offset. */
  readonly tailSum: number;
  /** The last entry, if there was one. */
  readonly lastId?: string;
}

/** The part of an entry that defines its place in the tree. */
export interface EntryHead {
  readonly id: string;
  /** Null at the root of the tree. */
  readonly parentId: string | null;
  /** pi has moved within the tree: the entry does not follow the previous one. */
  readonly isMove?: boolean;
}

/** A difference between a file and its mark. */
export interface FileChange {
  /** The file's current mark. */
  readonly mark: FileMark;
  /**
   * `grown`: the entries are those after the mark. `rewritten`: the content before the mark has changed, and the
   * entries are all of the file. `removed`: the file is missing or empty.
   */
  readonly kind: "grown" | "rewritten" | "removed";
  readonly entries: readonly EntryHead[];
}

/** The mark of a missing file. */
export const noFile: FileMark = { size: 0, inode: 0, mtimeMs: 0, read: 0, tailSum: 0 };

/** Bytes before the mark that are compared. */
const tailBytes = 256;
/** Bytes at the end that are searched for the last entry. */
const endBytes = 64 * 1024;
const chunkBytes = 256 * 1024;
/** A longer entry is skipped, and the entry after it counts as a branch. */
const maxEntryBytes = 64 * 1024 * 1024;

/** The change of the file since the mark was made. Takes one system call if nothing changed. */
export async function changeSince(file: string, mark: FileMark): Promise<FileChange | undefined> {
  const found = await stat(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (found === undefined || found.size === 0) {
    return mark.size === 0 ? undefined : { mark: noFile, kind: "removed", entries: [] };
  }
  if (found.size === mark.size && found.ino === mark.inode && found.mtimeMs === mark.mtimeMs) return undefined;
  const handle = await openSessionFile(file);
  try {
    // The handle's file is read, even if the name refers to another file meanwhile.
    const { size, ino: inode, mtimeMs } = await handle.stat();
    const isGrown = mark.size === 0 || (inode === mark.inode && size >= mark.read && (await hasTail(handle, mark)));
    const from = isGrown ? mark.read : 0;
    const { entries, read } = await headsFrom(handle, from, size);
    const lastId = entries.at(-1)?.id ?? (isGrown ? mark.lastId : undefined);
    const tailSum = await sumBefore(handle, read);
    return {
      mark: { size, inode, mtimeMs, read, tailSum, ...(lastId === undefined ? {} : { lastId }) },
      kind: isGrown ? "grown" : "rewritten",
      entries,
    };
  } finally {
    await handle.close();
  }
}

/** The current mark of a file. Only its end is read, unless the last entry is very large. */
export async function markOf(file: string): Promise<FileMark> {
  const handle = await openSessionFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (handle === undefined) return noFile;
  try {
    const { size, ino: inode, mtimeMs } = await handle.stat();
    if (size === 0) return noFile;
    const length = Math.min(size, endBytes);
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, size - length);
    const end = buffer.subarray(0, bytesRead);
    const whole = end.lastIndexOf(0x0a) + 1;
    const lines = end
      .subarray(0, whole)
      .toString("latin1")
      .split("\n")
      .slice(length < size ? 1 : 0);
    const lastId = lines.map((line) => headOf(Buffer.from(line, "latin1"))).findLast((head) => head !== undefined)?.id;
    if (lastId === undefined && length < size) return (await changeSince(file, noFile))?.mark ?? noFile;
    const read = size - length + whole;
    const tailSum = await sumBefore(handle, read);
    return { size, inode, mtimeMs, read, tailSum, ...(lastId === undefined ? {} : { lastId }) };
  } finally {
    await handle.close();
  }
}

/** All entries of a file, in their order. */
export async function allHeads(file: string): Promise<readonly EntryHead[]> {
  return (await changeSince(file, noFile))?.entries ?? [];
}

async function hasTail(handle: FileHandle, mark: FileMark): Promise<boolean> {
  return (await sumBefore(handle, mark.read)) === mark.tailSum;
}

async function sumBefore(handle: FileHandle, end: number): Promise<number> {
  const length = Math.min(end, tailBytes);
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, end - length);
  return crc32(buffer.subarray(0, bytesRead));
}

async function headsFrom(
  handle: FileHandle,
  from: number,
  to: number,
): Promise<{ entries: EntryHead[]; read: number }> {
  const entries: EntryHead[] = [];
  let seen = from;
  let read = from;
  if (to <= from) return { entries, read };
  const splitter = new JsonlSplitter({
    maxRecordBytes: maxEntryBytes,
    onRecord: (line) => {
      const head = headOf(line);
      if (head !== undefined) entries.push(head);
    },
    onOversize: () => {},
  });
  const place = { start: from, end: to - 1, highWaterMark: chunkBytes, autoClose: false };
  for await (const chunk of handle.createReadStream(place)) {
    const bytes = chunk as Buffer;
    const newline = bytes.lastIndexOf(0x0a);
    if (newline >= 0) read = seen + newline + 1;
    seen += bytes.length;
    splitter.push(bytes);
  }
  return { entries, read };
}

/**
 * pi writes the place in the tree first in most entries, so that the rest need not be parsed. Entries that can be a
 * move are parsed.
 */
const headPattern =
  /^\{"type":"(?!(?:session|custom|branch_summary)")[a-z_]{1,64}","id":"([^"\\]{1,128})","parentId":(?:"([^"\\]{1,128})"|null)[,}]/;
const headBytes = 512;

export function headOf(line: Buffer): EntryHead | undefined {
  const head = headPattern.exec(line.toString("latin1", 0, headBytes));
  if (head?.[1] !== undefined && line[line.length - 1] === 0x7d) return { id: head[1], parentId: head[2] ?? null };
  try {
    const entry = parseBounded(line);
    if (!isRecord(entry) || entry["type"] === "session" || typeof entry["id"] !== "string") return undefined;
    const { id, type, customType } = entry;
    const parentId = typeof entry["parentId"] === "string" ? entry["parentId"] : null;
    const isMove = type === "branch_summary" || (type === "custom" && customType === NAVIGATED_TYPE);
    return { id, parentId, ...(isMove ? { isMove } : {}) };
  } catch {
    // pi skips invalid lines, too.
    return undefined;
  }
}

/** Whether the newest of the entries descends from `ancestor`, which may be before or among them. */
export function descends(entries: readonly EntryHead[], ancestor: string | undefined): boolean {
  if (ancestor === undefined) return true;
  const parents = new Map(entries.map(({ id, parentId }) => [id, parentId]));
  let id: string | null | undefined = entries.at(-1)?.id ?? ancestor;
  for (let steps = 0; steps <= entries.length && typeof id === "string"; steps += 1) {
    if (id === ancestor) return true;
    id = parents.get(id);
  }
  return false;
}

/** Whether each entry follows the previous one, the first one `lastId`, or reports a move in the tree. */
export function isOneLine(entries: readonly EntryHead[], lastId: string | undefined): boolean {
  let before = lastId ?? null;
  for (const { id, parentId, isMove } of entries) {
    if (parentId !== before && isMove !== true) return false;
    before = id;
  }
  return true;
}
