import { type FileHandle, stat } from "node:fs/promises";
import { crc32 } from "node:zlib";
import { JsonlSplitter } from "../../protocol/jsonl.ts";
import { NAVIGATED_TYPE } from "../../protocol/link.ts";
import { openSessionFile } from "./open-file.ts";
import { isRecordObject } from "./records.ts";
import { parseBounded } from "./structure.ts";

/** A session file as it was when it was last looked at, to see at a glance whether it is another by now. */
export interface FileMark {
  /** Bytes; 0 also where there is no file. */
  readonly size: number;
  readonly inode: number;
  readonly mtimeMs: number;
  /** Up to here whole lines were read. */
  readonly read: number;
  /** CRC-32 of the last bytes before that. */
  readonly tailSum: number;
  /** The last entry, if there was one. */
  readonly lastId?: string;
}

/** What of an entry says where it stands. */
export interface EntryHead {
  readonly id: string;
  /** Null at the root of the tree. */
  readonly parentId: string | null;
  /** pi has moved within the tree: the entry does not follow the one before it. */
  readonly isMove?: boolean;
}

/** A file that is another than its mark says. */
export interface FileChange {
  /** As it is now. */
  readonly mark: FileMark;
  /**
   * `grown`: the entries are those behind the mark. `rewritten`: what stood before the mark is another, and the entries
   * are all that there are. `removed`: the file is gone, or empty.
   */
  readonly kind: "grown" | "rewritten" | "removed";
  readonly entries: readonly EntryHead[];
}

/** There was nothing. */
export const noFile: FileMark = { size: 0, inode: 0, mtimeMs: 0, read: 0, tailSum: 0 };

/** So many bytes before the mark are compared. */
const tailBytes = 256;
/** As much of the end is looked at for the last entry. */
const endBytes = 64 * 1024;
const chunkBytes = 256 * 1024;
/** A longer entry's place in the tree is not known; it is passed over, and its child is taken for a branch. */
const maxEntryBytes = 64 * 1024 * 1024;

/** What has changed in the file since the mark was made; one call of the system while that is nothing. */
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
    // What is read now belongs to what the handle says, whatever the name has become meanwhile.
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

/** The file as it is now. Only its end is read, unless the last entry is a very large one. */
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

/** All entries of a file that are there, in their order. */
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
 * How pi writes most entries: its place in the tree comes first, so that the rest need not be parsed. Entries that can be a
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
    if (!isRecordObject(entry) || entry["type"] === "session" || typeof entry["id"] !== "string") return undefined;
    const { id, type, customType } = entry;
    const parentId = typeof entry["parentId"] === "string" ? entry["parentId"] : null;
    const isMove = type === "branch_summary" || (type === "custom" && customType === NAVIGATED_TYPE);
    return { id, parentId, ...(isMove ? { isMove } : {}) };
  } catch {
    // pi passes over a line that is none, too.
    return undefined;
  }
}

/** Whether the newest of the entries descends from `ancestor`, which may stand before them or among them. */
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

/** Whether each entry follows the one before it, the first one `lastId`, or says that pi has moved in the tree. */
export function isOneLine(entries: readonly EntryHead[], lastId: string | undefined): boolean {
  let before = lastId ?? null;
  for (const { id, parentId, isMove } of entries) {
    if (parentId !== before && isMove !== true) return false;
    before = id;
  }
  return true;
}
