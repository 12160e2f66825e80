import { JsonlSplitter } from "../../protocol/jsonl.ts";
import { isRecord } from "../../protocol/objects.ts";
import { unusable } from "./lease.ts";
import { openSessionFile } from "./open-file.ts";
import { isBounded, MAX_DEPTH, MAX_PARTS } from "./structure.ts";

/** A longer line is skipped. */
const maxEntryBytes = 64 * 1024 * 1024;

/**
 * Checks the entries of a file that another program may have written, before a pi loads it: pi follows parents
 * without end if they form a cycle. Keeps one line at a time in memory. Throws `session_file_unusable`.
 */
export async function checkEntries(file: string): Promise<void> {
  const parents = new Map<unknown, unknown>();
  let line = 0;
  const onRecord = (record: Buffer): void => {
    line += 1;
    requireBounded(file, record, line);
    const { type, id, parentId } = entryIn(record);
    // pi follows ids of every type. Files of its first version have none.
    if (type === "session" || id === undefined || id === null) return;
    if (parents.has(id)) throw unusable(file, "entries_damaged", `has the entry ${shown(id)} twice (line ${line})`);
    parents.set(id, parentId);
  };
  const onOversize = (): void => {
    line += 1;
  };
  const splitter = new JsonlSplitter({ maxRecordBytes: maxEntryBytes, onRecord, onOversize });
  const handle = await openSessionFile(file);
  for await (const chunk of handle.createReadStream()) splitter.push(chunk as Buffer);
  splitter.push(Buffer.from("\n"));
  requireNoCycle(file, parents);
}

/**
 * Throws `session_file_unusable` for an entry that takes too long to parse, or is nested too deeply to be serialised.
 */
export function requireBounded(file: string, record: Buffer, line: number): void {
  if (isBounded(record)) return;
  const limits = `deeper than ${MAX_DEPTH} levels or of more than ${MAX_PARTS} parts`;
  throw unusable(file, "entries_damaged", `has an entry that is ${limits} (line ${line})`);
}

/** Throws `session_file_unusable` if parents form a cycle. */
export function requireNoCycle(file: string, parents: ReadonlyMap<unknown, unknown>): void {
  const known = new Set<unknown>();
  for (const start of parents.keys()) {
    const path = new Set<unknown>();
    let id: unknown = start;
    while (parents.has(id) && !known.has(id)) {
      if (path.has(id)) throw unusable(file, "entries_damaged", `has a cycle of parents at the entry ${shown(id)}`);
      path.add(id);
      id = parents.get(id);
    }
    for (const one of path) known.add(one);
  }
}

/** A line that is not an object is skipped, as by pi. */
function entryIn(record: Buffer): Readonly<Record<string, unknown>> {
  try {
    const entry: unknown = JSON.parse(record.toString("utf8"));
    return isRecord(entry) ? entry : {};
  } catch {
    return {};
  }
}

function shown(id: unknown): string {
  return JSON.stringify(id).slice(0, 128);
}
