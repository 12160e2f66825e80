import { createHash } from "node:crypto";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { JsonlSplitter } from "../../protocol/jsonl.ts";
import { EntryCheck } from "./entry-check.ts";
import { allHeads, headOf } from "./file-mark.ts";
import { openSessionFile, unusable } from "./open-file.ts";
import { header, type SessionFileRequest } from "./session-file.ts";
import { readStoredHeader } from "./stored-header.ts";

export interface BranchRequest {
  /** The session file that has the branch. */
  readonly file: string;
  /** The branch's last entry. */
  readonly leafId: string;
  /** The id of the new session. */
  readonly sessionId: string;
  readonly cwd: string;
  readonly now: Date;
}

const maxEntryBytes = 64 * 1024 * 1024;
const writeBytes = 1024 * 1024;

/** The path of a new session's file: in the same directory, with a name in pi's format. */
function siblingFile(file: string, sessionId: string, now: Date): string {
  return join(dirname(file), `${now.toISOString().replace(/[:.]/g, "-")}_${sessionId}.jsonl`);
}

/**
 * Writes the branch of a session that ends with an entry to a new file, like pi's `clone`, and returns its path. pi
 * is not involved, because it may have loaded another branch. Throws if the branch is incomplete; then nothing
 * remains.
 */
export async function writeBranch({ file, leafId, sessionId, cwd, now }: BranchRequest): Promise<string> {
  const path = await pathTo(file, leafId);
  const target = siblingFile(file, sessionId, now);
  const handle = await open(target, "wx", 0o600);
  try {
    const header = {
      type: "session",
      version: 3,
      id: sessionId,
      timestamp: now.toISOString(),
      cwd,
      parentSession: file,
    };
    await handle.write(`${JSON.stringify(header)}\n`);
    await copyEntries(file, path, handle);
    await handle.sync();
  } catch (error) {
    await unlink(target).catch(() => {});
    throw error;
  } finally {
    await handle.close();
  }
  return target;
}

/** The ids from the root to the leaf. */
async function pathTo(file: string, leafId: string): Promise<ReadonlySet<string>> {
  const parents = new Map((await allHeads(file)).map(({ id, parentId }) => [id, parentId]));
  const path = new Set<string>();
  for (let id: string | null = leafId; id !== null; ) {
    const parent = parents.get(id);
    if (parent === undefined || path.has(id)) throw new Error(`The entry ${id} is not part of the session's tree.`);
    path.add(id);
    id = parent;
  }
  return path;
}

async function copyEntries(file: string, path: ReadonlySet<string>, target: FileHandle): Promise<void> {
  const left = new Set(path);
  await copyLines(file, {
    isWanted: (line) => {
      const id = headOf(line)?.id;
      return id !== undefined && left.delete(id);
    },
    onOversize: () => {},
    write: (block) => target.writeFile(block),
  });
  if (left.size > 0) throw new Error("The session's branch is incomplete.");
}

/**
 * Writes all entries of a session after a new header, like pi's `--fork`. What is written to the session meanwhile is left
 * out. Returns what it wrote. Throws `session_file_unusable` for the session's file.
 */
export async function writeFork(
  file: string,
  target: FileHandle,
  request: SessionFileRequest,
): Promise<{ readonly bytes: number; readonly sha256: string }> {
  readStoredHeader(file);
  const hash = createHash("sha256");
  let bytes = 0;
  const write = async (block: Buffer): Promise<void> => {
    hash.update(block);
    bytes += block.length;
    await target.writeFile(block);
  };
  await write(Buffer.from(header(request)));
  const check = new EntryCheck(file);
  await copyLines(file, {
    isWanted: (line) => check.entryIn(line) !== undefined,
    onOversize: () => {
      throw unusable(file, "entries_damaged", `has an entry of more than ${maxEntryBytes} bytes`);
    },
    write,
  });
  check.end();
  return { bytes, sha256: hash.digest("hex") };
}

interface Copying {
  readonly isWanted: (line: Buffer) => boolean;
  readonly onOversize: () => void;
  /** Gets lines with their ends. */
  readonly write: (block: Buffer) => Promise<void>;
}

/** Reads the lines that a file has now. The last one may lack its end. */
async function copyLines(file: string, { isWanted, onOversize, write }: Copying): Promise<void> {
  let lines: Buffer[] = [];
  let bytes = 0;
  const flush = async (): Promise<void> => {
    const block = Buffer.concat(lines);
    lines = [];
    bytes = 0;
    if (block.length > 0) await write(block);
  };
  const splitter = new JsonlSplitter({
    maxRecordBytes: maxEntryBytes,
    onRecord: (line) => {
      if (!isWanted(line)) return;
      lines.push(Buffer.concat([line, Buffer.from("\n")]));
      bytes += line.length;
    },
    onOversize,
  });
  const source = await openSessionFile(file);
  try {
    const { size } = await source.stat();
    if (size > 0) {
      for await (const chunk of source.createReadStream({ end: size - 1, autoClose: false })) {
        splitter.push(chunk as Buffer);
        if (bytes > writeBytes) await flush();
      }
    }
  } finally {
    await source.close();
  }
  splitter.push(Buffer.from("\n"));
  await flush();
}
