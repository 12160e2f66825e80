import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { parsed } from "./rows.ts";
import type { StoredSession } from "./stored-session.ts";

/** The file is rewritten after this many lines in addition to one for each session. */
const maxSpareLines = 10_000;

const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND;

/** The first line, which distinguishes a file without sessions from a missing file. */
const heading = { list: "sessions" } as const;

/** Closed sessions by id, with the names of their logs. A session id can be closed and reopened several times. */
export type ClosedSessions = ReadonlyMap<string, ReadonlySet<string | undefined>>;

/** The content of the file. */
export interface ListedSessions {
  readonly sessions: ReadonlyMap<string, StoredSession>;
  /** Whether the file exists: then sessions that it lacks were closed. */
  readonly isThere: boolean;
  /** Sessions that the database may lack. */
  readonly ahead: readonly StoredSession[];
  /** Closed sessions that the database may still have. */
  readonly closed: ClosedSessions;
}

/**
 * Whether this instance of a session was closed. Without a log name it was created from pi's file, before any
 * closing.
 */
export function isClosed(closed: ClosedSessions, { sessionId, logEpoch }: StoredSession): boolean {
  const epochs = closed.get(sessionId);
  return epochs !== undefined && (logEpoch === undefined || epochs.has(logEpoch));
}

/**
 * The list of sessions in a file of its own: a line of JSON for each new or closed session, and for each change that
 * cannot be found elsewhere. It is read to add sessions that the database lost or never had, and to delete closed
 * ones: a failing store may write or delete a session's row late or never.
 */
export class SessionList {
  readonly #file: string;
  readonly #onFailure: (error: unknown) => void;
  /** The current sessions, and their lines in the file. */
  readonly #sessions = new Map<string, { readonly session: StoredSession; readonly text: string }>();
  /** Sessions that the database does not have yet. */
  readonly #ahead = new Set<string>();
  /** Closed sessions that the database may still have. */
  readonly #closed = new Map<string, Set<string | undefined>>();
  #descriptor: number | undefined;
  #isOpen = false;
  #lines = 0;
  /** Beyond this number of lines the file is rewritten. */
  #maxLines = 0;
  /** Whether the file lacks a change or ends with a torn line. */
  #isIncomplete = false;

  constructor(file: string, onFailure: (error: unknown) => void) {
    this.#file = file;
    this.#onFailure = onFailure;
  }

  /** The sessions in the file. Invalid lines are skipped: the file may have been torn, too. */
  static read(file: string): ListedSessions {
    const sessions = new Map<string, StoredSession>();
    const ahead = new Set<string>();
    const closed = new Map<string, Set<string | undefined>>();
    let isThere = false;
    for (const line of textOf(file).split("\n")) {
      const entry = parsed(line) as (Partial<Line> & { readonly closed?: boolean }) | undefined;
      isThere ||= isHeading(entry);
      const id = entry?.sessionId;
      if (typeof id !== "string") continue;
      if (entry?.closed === true) {
        sessions.delete(id);
        noteClosed(closed, id, entry.logEpoch);
      }
      if (entry?.closed === true || entry?.stored === true) ahead.delete(id);
      else if (isStoredSession(entry)) {
        const { stored, ...session } = entry as Line;
        sessions.set(id, session);
        if (stored === false) ahead.add(id);
      }
    }
    return {
      sessions,
      // Older files have no first line.
      isThere: isThere || sessions.size > 0,
      ahead: [...sessions.values()].filter(({ sessionId }) => ahead.has(sessionId)),
      closed,
    };
  }

  /** Rewrites the file: with the sessions in the database, those that it lacks, and closed ones. */
  begin(
    stored: readonly StoredSession[],
    ahead: readonly StoredSession[] = [],
    closed: ClosedSessions = new Map(),
  ): void {
    for (const session of ahead) {
      this.#keep(session);
      this.#ahead.add(session.sessionId);
    }
    for (const session of stored) {
      this.#keep(session);
      this.#ahead.delete(session.sessionId);
    }
    for (const [id, epochs] of closed) for (const epoch of epochs) noteClosed(this.#closed, id, epoch);
    this.#isOpen = true;
    this.#rewrite();
  }

  put(session: StoredSession): void {
    const { sessionId } = session;
    const before = this.#sessions.get(sessionId);
    if (before === undefined) this.#ahead.add(sessionId);
    const { text } = this.#keep(session);
    if (before?.text !== text) this.#append(this.#ahead.has(sessionId) ? { ...session, stored: false } : session);
  }

  /** The database has it, and nothing of a closed session with its id. Ignored if it was closed since. */
  stored({ sessionId, logEpoch }: StoredSession): void {
    if (this.#sessions.get(sessionId)?.session.logEpoch !== logEpoch) return;
    this.#closed.delete(sessionId);
    if (this.#ahead.delete(sessionId)) this.#append({ sessionId, stored: true });
  }

  /** Sessions that the database does not have yet. */
  get ahead(): readonly StoredSession[] {
    return [...this.#ahead].flatMap((sessionId) => this.#sessions.get(sessionId)?.session ?? []);
  }

  /**
   * Notes that a session is closed, whatever the database says. Returns a function to call when the database has no
   * rows of it.
   */
  delete(sessionId: string): () => void {
    this.#ahead.delete(sessionId);
    const known = this.#sessions.get(sessionId);
    if (known === undefined) return () => {};
    this.#sessions.delete(sessionId);
    const { logEpoch } = known.session;
    noteClosed(this.#closed, sessionId, logEpoch);
    this.#append(closedLine(sessionId, logEpoch));
    return () => {
      const epochs = this.#closed.get(sessionId);
      epochs?.delete(logEpoch);
      if (epochs?.size === 0) this.#closed.delete(sessionId);
    };
  }

  /** Whether this instance of a session was closed, and the database may still have it. */
  hasClosed(session: StoredSession): boolean {
    return isClosed(this.#closed, session);
  }

  /** The database has no rows of sessions with this id that were closed before this daemon started. */
  forgotten(sessionId: string): void {
    this.#closed.delete(sessionId);
  }

  close(): void {
    this.#isOpen = false;
    this.#closeFile();
  }

  #keep(session: StoredSession): { readonly text: string } {
    const kept = { session, text: lasting(session) };
    this.#sessions.set(session.sessionId, kept);
    return kept;
  }

  /** Appends a line for a change, or rewrites the file if it is long or lacks something. */
  #append(entry: object): void {
    if (!this.#isOpen) return;
    if ((this.#isIncomplete || this.#lines >= this.#maxLines) && this.#rewrite()) return;
    const descriptor = this.#descriptor;
    if (descriptor === undefined) return;
    try {
      // Ends the partial line of a failed write.
      const line = Buffer.from(`${this.#isIncomplete ? "\n" : ""}${JSON.stringify(entry)}\n`);
      const written = writeSync(descriptor, line);
      if (written < line.length) throw new Error(`Of ${line.length} bytes ${written} were written.`);
      this.#lines += 1;
    } catch (error) {
      this.#isIncomplete = true;
      this.#onFailure(error);
    }
  }

  /** Replaces the file atomically, or leaves it unchanged. Failures are ignored, because it is only a copy. */
  #rewrite(): boolean {
    const temporary = `${this.#file}.new`;
    let descriptor: number | undefined;
    try {
      const lines = [heading, ...this.#all()];
      // Only a killed daemon can have left it: one daemon holds the state directory.
      rmSync(temporary, { force: true });
      descriptor = openSync(temporary, newFile, 0o600);
      writeFileSync(descriptor, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      fsyncSync(descriptor);
      renameSync(temporary, this.#file);
      this.#closeFile();
      this.#descriptor = descriptor;
      this.#isIncomplete = false;
      this.#lines = lines.length;
      this.#maxLines = lines.length + maxSpareLines;
      return true;
    } catch (error) {
      if (descriptor !== undefined) discard(descriptor, temporary);
      if (this.#descriptor === undefined) this.#isIncomplete = true;
      // Not retried at every line.
      this.#maxLines = this.#lines + maxSpareLines;
      this.#onFailure(error);
      return false;
    }
  }

  #all(): readonly object[] {
    const closed = Array.from(this.#closed, ([sessionId, epochs]) =>
      Array.from(epochs, (logEpoch) => closedLine(sessionId, logEpoch)),
    );
    const sessions = Array.from(this.#sessions, ([id, { session }]) =>
      this.#ahead.has(id) ? { ...session, stored: false } : session,
    );
    // A closed session may have been created again.
    return [...closed.flat(), ...sessions];
  }

  #closeFile(): void {
    const descriptor = this.#descriptor;
    this.#descriptor = undefined;
    if (descriptor !== undefined) closeSync(descriptor);
  }
}

/** `stored: false`: the database does not have it yet. */
type Line = StoredSession & { readonly stored?: boolean };

/** Never throws: the next attempt removes the file. */
function discard(descriptor: number, file: string): void {
  try {
    closeSync(descriptor);
    rmSync(file, { force: true });
  } catch {}
}

function closedLine(sessionId: string, logEpoch: string | undefined): object {
  return { sessionId, closed: true, ...(logEpoch === undefined ? {} : { logEpoch }) };
}

function noteClosed(
  closed: Map<string, Set<string | undefined>>,
  sessionId: string,
  logEpoch: string | undefined,
): void {
  const epochs = closed.get(sessionId) ?? new Set();
  closed.set(sessionId, epochs.add(logEpoch));
}

function lasting({
  reservedSeq: _seq,
  generation: _generation,
  updatedAt: _at,
  fileMark: _mark,
  isBeginning: _beginning,
  ...rest
}: StoredSession): string {
  return JSON.stringify(rest);
}

function isHeading(value: unknown): boolean {
  return (value as Partial<typeof heading> | undefined)?.list === heading.list;
}

function isStoredSession(value: unknown): value is StoredSession {
  const { sessionId, cwd, file, options } = value as Partial<StoredSession>;
  return (
    typeof sessionId === "string" && typeof cwd === "string" && typeof file === "string" && typeof options === "object"
  );
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
