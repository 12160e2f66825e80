import type { FileHandle } from "node:fs/promises";
import { JsonlSplitter } from "../../protocol/jsonl.ts";
import { isRecord } from "../../protocol/objects.ts";
import { requireBounded, requireNoCycle } from "../pi/entry-check.ts";
import { checkFile } from "../pi/lease.ts";
import { openSessionFile, unusable } from "../pi/open-file.ts";
import { requireOwnHeader, type SessionFileOwner } from "../pi/session-paths.ts";
import type { StoredSession } from "../store/stored-session.ts";

export type StoredEntry = Readonly<Record<string, unknown>>;

/** The entries of a session file, as pi loads them. */
export interface StoredEntries {
  readonly entries: readonly StoredEntry[];
  /** The last entry, at which a pi that loads the file continues. */
  readonly leafId: string | null;
  /** When the file was last written, in Unix milliseconds. */
  readonly at: number;
}

/** pi converts files of an older format when it loads them. */
const currentVersion = 3;
const chunkBytes = 256 * 1024;

/** Why only pi can read a file: it is missing or empty, has an older format, or is too long. */
export type UnreadReason = "missing" | "file_older_form" | "file_too_large";

/**
 * Reads a session's file in chunks, so that the event loop runs in between. Returns the reason where pi itself must
 * read it. Throws `session_file_unusable`.
 */
export async function readStoredEntries(
  owner: SessionFileOwner,
  maxBytes: number,
): Promise<StoredEntries | UnreadReason> {
  const { file } = owner;
  checkFile(file);
  const handle = await openSessionFile(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  try {
    return handle === undefined ? "missing" : await entriesIn(handle, owner, maxBytes);
  } finally {
    await handle?.close();
  }
}

/**
 * The entries of a session whose file is missing: a file without messages is deleted when its pi ends. Throws
 * `session_file_unusable` if it had messages.
 */
export function noEntries({ file, fileMark, updatedAt }: StoredSession): StoredEntries {
  if (fileMark?.lastId !== undefined) throw unusable(file, "missing", "was removed or emptied");
  return { entries: [], leafId: null, at: updatedAt };
}

async function entriesIn(
  handle: FileHandle,
  owner: SessionFileOwner,
  maxBytes: number,
): Promise<StoredEntries | UnreadReason> {
  const { file } = owner;
  const found = await handle.stat();
  if (found.size === 0) return "missing";
  requireOwnHeader(owner);
  if (found.size > maxBytes) return "file_too_large";
  const entries: StoredEntry[] = [];
  const parents = new Map<string, string | null>();
  let version: unknown;
  let lines = 0;
  const onRecord = (line: Buffer): void => {
    lines += 1;
    requireBounded(file, line, lines);
    const entry = entryIn(line);
    if (entry === undefined) return;
    const { type, id, parentId } = entry;
    if (type === "session") {
      version ??= entry["version"] ?? 1;
      return;
    }
    // Files of pi's first format have no ids.
    if (version !== currentVersion) return;
    if (typeof id !== "string" || (typeof parentId !== "string" && parentId !== null)) {
      throw unusable(file, "entries_damaged", `has an entry without an id or a parent (line ${lines})`);
    }
    if (parents.has(id)) throw unusable(file, "entries_damaged", `has the entry ${JSON.stringify(id)} twice`);
    parents.set(id, parentId);
    entries.push(entry);
  };
  const splitter = new JsonlSplitter({ maxRecordBytes: maxBytes, onRecord, onOversize: () => {} });
  // Later additions are left to the next call.
  const stream = handle.createReadStream({ end: found.size - 1, autoClose: false, highWaterMark: chunkBytes });
  for await (const chunk of stream) splitter.push(chunk as Buffer);
  splitter.push(Buffer.from("\n"));
  if (version !== currentVersion) return "file_older_form";
  requireNoCycle(file, parents);
  const leafId = entries.at(-1)?.["id"];
  return { entries, leafId: typeof leafId === "string" ? leafId : null, at: Math.round(found.mtimeMs) };
}

/** pi skips a line that is not valid JSON. */
function entryIn(line: Buffer): StoredEntry | undefined {
  try {
    const entry: unknown = JSON.parse(line.toString("utf8"));
    return isRecord(entry) ? entry : undefined;
  } catch {
    return undefined;
  }
}
