import { createHash } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, link, mkdir, open, readdir, readFile, rename, rm, unlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { writeFork } from "../pi/branch-file.ts";
import { exhaustion } from "../pi/exhaustion.ts";
import type { LeaseTaker } from "../pi/lease.ts";
import { createSessionFile, removeIfEmpty, type SessionFileRequest, sessionFilePath } from "../pi/session-file.ts";
import { requireOwnHeader, type SessionFileOwner } from "../pi/session-paths.ts";
import { LeaseHold } from "./lease-hold.ts";

/**
 * A record of session files that are being created, written before the files: if a daemon is killed during a
 * creation, the next one finds the orphaned file here and deletes it.
 */
export class CreatedFiles {
  readonly #taker: LeaseTaker;
  readonly #log: Logger;
  readonly #directory: string;

  constructor(taker: LeaseTaker, log: Logger) {
    this.#taker = taker;
    this.#log = log;
    this.#directory = join(taker.stateDir, "creating");
  }

  /**
   * Resolves when a later daemon would find the file, and its content if that is more than a header. A former note of
   * the session stays until this one is whole. A full disk does not prevent the attempt.
   */
  async begin(sessionId: string, file: string, content?: ContentSum): Promise<void> {
    const note: Note = { file, ...(content === undefined ? {} : { content }) };
    const path = this.#noteOf(sessionId);
    const write = (): Promise<void> => writeFile(path + partial, JSON.stringify(note), { mode: 0o600 });
    try {
      await write().catch(async (error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
        await mkdir(this.#directory, { recursive: true, mode: 0o700 });
        await write();
      });
      await rename(path + partial, path);
    } catch (error) {
      this.#log.warn({ err: error, file }, "cannot record the creation of a session's file");
    }
  }

  /**
   * Creates a session's file from that of another one, `source`. Returns what it contains. Throws `session_file_unusable`
   * for the source, and as {@link createFile}.
   */
  async fork(request: SessionFileRequest, source: string): Promise<ContentSum> {
    const file = sessionFilePath(request);
    return await named(
      request,
      createWhole(file, async (handle) => {
        const content = await writeFork(source, handle, request);
        await this.begin(request.sessionId, file, content);
        return content;
      }),
    );
  }

  /**
   * Removes the note of a session that is stored, or whose file is gone. If the session is stored, no answer needs to
   * wait for this: the next daemon removes a note that stays, and keeps the file. Never rejects.
   */
  async end(sessionId: string): Promise<void> {
    await unlink(this.#noteOf(sessionId)).catch(() => {});
  }

  #noteOf(sessionId: string): string {
    return join(this.#directory, sessionId);
  }

  /**
   * Deletes files that a killed daemon left: files of unknown sessions, without messages except the initial ones.
   * `isKnown` is also true for a closed session.
   */
  async sweep(isKnown: (sessionId: string) => boolean): Promise<void> {
    const left = await readdir(this.#directory).catch(() => [] as string[]);
    for (const sessionId of left) {
      try {
        if (!sessionId.endsWith(partial) && !isKnown(sessionId)) await this.#remove(sessionId);
      } catch (error) {
        this.#log.warn({ err: error, sessionId }, "cannot check the file of a former daemon's session");
      }
      await this.end(sessionId);
    }
  }

  async #remove(sessionId: string): Promise<void> {
    const text = await readFile(this.#noteOf(sessionId), "utf8");
    // The system crashed before the note was on disk.
    if (text === "") return;
    const { file, content } = noteIn(text);
    const lease = new LeaseHold({ taker: this.#taker, log: this.#log });
    try {
      await lease.hold(file, 0);
    } catch {
      // Another daemon has it, or its directory is gone.
      return;
    }
    // No session uses this name.
    await rm(unfinished(file), { force: true }).catch(() => {});
    const isRemoved =
      content === undefined
        ? isOwn({ sessionId, file }) && (await removeIfEmpty(file))
        : await removeIfUnused(file, content);
    await lease.letGo();
    this.#log.info(
      { file, directory: dirname(file), isRemoved },
      "checked a session file that a killed daemon had created",
    );
  }
}

/** The content with which a file was created. */
export interface ContentSum {
  readonly bytes: number;
  readonly sha256: string;
}

interface Note {
  readonly file: string;
  readonly content?: ContentSum;
}

/** The end of the name of a note that is being written. */
const partial = ".partial";

/** Whether a file has a session's header. A note that could not be removed may name what is another session's file now. */
function isOwn(owner: SessionFileOwner): boolean {
  try {
    requireOwnHeader(owner);
    return true;
  } catch {
    return false;
  }
}

/** Former versions recorded only the path. */
function noteIn(text: string): Note {
  return text.startsWith("{") ? (JSON.parse(text) as Note) : { file: text };
}

export function sumOf(content: Uint8Array): ContentSum {
  return { bytes: content.byteLength, sha256: createHash("sha256").update(content).digest("hex") };
}

/**
 * As `createSessionFile`; `content`: the complete file. Throws `overloaded`, `start_failed`, `conflict`, and the errors of
 * a full disk.
 */
export async function createFile(request: SessionFileRequest, content?: Uint8Array): Promise<string> {
  const file = sessionFilePath(request);
  await named<unknown>(
    request,
    content === undefined ? createSessionFile(request) : createWhole(file, (handle) => handle.writeFile(content)),
  );
  return file;
}

/** Names the errors of creating a file. */
async function named<T>(request: SessionFileRequest, created: Promise<T>): Promise<T> {
  return await created.catch((cause: NodeJS.ErrnoException | WireError) => {
    if (cause instanceof WireError) throw cause;
    if (cause.code === "EEXIST" && request.file !== undefined) throw fileExists(request.file);
    const message = `pi's session file could not be created (${cause.code}): ${cause.message}.`;
    throw exhaustion(cause) ?? new WireError("start_failed", message, {}, { cause });
  });
}

export function fileExists(file: string): WireError {
  return new WireError("conflict", `The file ${file} exists already. Open it instead, if it is a session.`, { file });
}

/**
 * Writes all or nothing: a killed daemon leaves no file that pi would take for a session. Rejects with `EEXIST` if another
 * has made the file, or is making it.
 */
async function createWhole<T>(file: string, write: (handle: FileHandle) => Promise<T>): Promise<T> {
  const temporary = unfinished(file);
  await mkdir(dirname(file), { recursive: true });
  const handle = await open(temporary, "wx", 0o600);
  try {
    let written: T;
    try {
      written = await write(handle);
      await handle.sync();
    } finally {
      await handle.close();
    }
    await moveNew(temporary, file);
    return written;
  } finally {
    await rm(temporary, { force: true }).catch(() => {});
  }
}

/** Moves a file to a path that nothing has. */
async function moveNew(from: string, to: string): Promise<void> {
  try {
    await link(from, to);
  } catch (error) {
    // Some file systems have no links.
    if (!noLinks.has((error as NodeJS.ErrnoException).code)) throw error;
    await (await open(to, "wx", 0o600)).close();
    await rename(from, to);
  }
}

const noLinks: ReadonlySet<string | undefined> = new Set(["EPERM", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EMLINK"]);

function unfinished(file: string): string {
  return `${file}.unfinished`;
}

/**
 * Deletes a file that was created with messages, unless there were later ones: after the initial content there are at
 * most the notes of pi and its extensions at their start. Returns whether it did.
 */
export async function removeIfUnused(file: string, { bytes, sha256 }: ContentSum): Promise<boolean> {
  try {
    const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const { size } = await handle.stat();
      if (size < bytes || size > bytes + maxNotesBytes) return false;
      const hash = createHash("sha256");
      const content = handle.createReadStream({ start: 0, end: bytes - 1, autoClose: false });
      for await (const chunk of content) hash.update(chunk as Buffer);
      if (hash.digest("hex") !== sha256) return false;
      const { buffer, bytesRead } = await handle.read(Buffer.alloc(maxNotesBytes), 0, maxNotesBytes, bytes);
      if (!isOnlyNotes(buffer.toString("utf8", 0, bytesRead))) return false;
    } finally {
      await handle.close();
    }
    await unlink(file);
    return true;
  } catch {
    return false;
  }
}

const maxNotesBytes = 256 * 1024;
/** `custom`: an extension's own data. */
const notes: ReadonlySet<string> = new Set(["model_change", "thinking_level_change", "session_info", "custom"]);

function isOnlyNotes(text: string): boolean {
  const lines = text.split("\n");
  const torn = lines.pop() ?? "";
  const isNote = (line: string): boolean => {
    const entry = JSON.parse(line) as { type?: unknown; message?: { role?: unknown } };
    return notes.has(String(entry.type)) || (entry.type === "message" && entry.message?.role === "system");
  };
  return lines.filter((line) => line !== "").every(isNote) && (torn === "" || isTornNote(torn));
}

/** Whether an incomplete line can only be a note. */
function isTornNote(line: string): boolean {
  const [, type = "", end] = /^\{"type":"([a-z_]*)("?)/.exec(line) ?? [];
  if (end === '"') return notes.has(type);
  return !"message".startsWith(type) && [...notes].some((note) => note.startsWith(type));
}
