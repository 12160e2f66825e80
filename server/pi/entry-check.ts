import { JsonlSplitter } from "../../protocol/jsonl.ts";
import { isRecord } from "../../protocol/objects.ts";
import { openSessionFile, unusable } from "./open-file.ts";
import { isBounded, MAX_DEPTH, MAX_PARTS } from "./structure.ts";

/** A longer line is skipped. */
const maxEntryBytes = 64 * 1024 * 1024;

/**
 * Checks the entries of a file that another program may have written, before a pi loads it: pi follows parents
 * without end if they form a cycle. Keeps one line at a time in memory. Throws `session_file_unusable`.
 */
export async function checkEntries(file: string): Promise<void> {
  const check = new EntryCheck(file);
  const onRecord = (record: Buffer): void => void check.entryIn(record);
  const onOversize = (): void => check.skip();
  const splitter = new JsonlSplitter({ maxRecordBytes: maxEntryBytes, onRecord, onOversize });
  const handle = await openSessionFile(file);
  for await (const chunk of handle.createReadStream()) splitter.push(chunk as Buffer);
  splitter.push(Buffer.from("\n"));
  check.end();
}

/** Checks the entries of a file, line by line. Every method throws `session_file_unusable`. */
export class EntryCheck {
  readonly #file: string;
  readonly #parents = new Map<unknown, unknown>();
  #line = 0;

  constructor(file: string) {
    this.#file = file;
  }

  /** The line's entry. Undefined: it is a header, or not an object, which pi skips. */
  entryIn(record: Buffer): Readonly<Record<string, unknown>> | undefined {
    this.#line += 1;
    requireBounded(this.#file, record, this.#line);
    const entry = objectIn(record);
    if (entry === undefined || entry["type"] === "session") return undefined;
    const { id, parentId } = entry;
    // pi follows ids of every type. Files of its first version have none.
    if (id === undefined || id === null) return entry;
    if (this.#parents.has(id)) {
      throw unusable(this.#file, "entries_damaged", `has the entry ${shown(id)} twice (line ${this.#line})`);
    }
    this.#parents.set(id, parentId);
    return entry;
  }

  /** A line that was not read. */
  skip(): void {
    this.#line += 1;
  }

  /** After the last line. */
  end(): void {
    requireNoCycle(this.#file, this.#parents);
  }
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

function objectIn(record: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const entry: unknown = JSON.parse(record.toString("utf8"));
    return isRecord(entry) ? entry : undefined;
  } catch {
    return undefined;
  }
}

function shown(id: unknown): string {
  return JSON.stringify(id).slice(0, 128);
}
