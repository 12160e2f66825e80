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
import type { StoredSession } from "./sessions.ts";

/** After so many lines beyond one for each session the file is written anew. */
const maxSpareLines = 10_000;

const newFile = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_APPEND;

/** The first line, which tells a file of no session from one that is missing. */
const heading = { list: "sessions" } as const;

/** Sessions that were closed, by their ids: the names of their logs. One id can have had several lives. */
export type ClosedSessions = ReadonlyMap<string, ReadonlySet<string | undefined>>;

/** What the file says. */
export interface ListedSessions {
  readonly sessions: ReadonlyMap<string, StoredSession>;
  /** Whether the file was there: a session that it does not name was closed. */
  readonly isThere: boolean;
  /** Those that the database may never have got. */
  readonly ahead: readonly StoredSession[];
  /** Those that the database may still have. */
  readonly closed: ClosedSessions;
}

/** Whether this life of a session was closed. One whose log has no name yet was made of pi's file, before any closing. */
export function isClosed(closed: ClosedSessions, { sessionId, logEpoch }: StoredSession): boolean {
  const epochs = closed.get(sessionId);
  return epochs !== undefined && (logEpoch === undefined || epochs.has(logEpoch));
}

/**
 * What sessions there are, in a file of its own: a line of JSON for each session that has begun or changed in what cannot
 * be found elsewhere, and for each that was closed. It is read when the database has lost them, for those that it never
 * had, and for those that it still has: a store that fails may get a session's row, or lose it, long after clients know
 * of it, or not at all.
 */
export class SessionList {
  readonly #file: string;
  readonly #onFailure: (error: unknown) => void;
  /** The sessions as they are now, and what of them stands in the file. */
  readonly #sessions = new Map<string, { readonly session: StoredSession; readonly text: string }>();
  /** The sessions that the database does not have yet. */
  readonly #ahead = new Set<string>();
  /** The sessions that it may still have. */
  readonly #closed = new Map<string, Set<string | undefined>>();
  #descriptor: number | undefined;
  #isOpen = false;
  #lines = 0;
  /** With more lines than these the file is written anew. */
  #maxLines = 0;
  /** Whether the file lacks something, or has a torn end. */
  #isBehind = false;

  constructor(file: string, onFailure: (error: unknown) => void) {
    this.#file = file;
    this.#onFailure = onFailure;
  }

  /** What the file says of all sessions. A line that is none is passed over: the file may have been torn, too. */
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

  /** Writes the file anew: with the sessions that the database has, those that it lacks, and those that are closed. */
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

  /** The database has it from now on, and with it nothing of an earlier life. One that was closed since is passed over. */
  stored({ sessionId, logEpoch }: StoredSession): void {
    if (this.#sessions.get(sessionId)?.session.logEpoch !== logEpoch) return;
    this.#closed.delete(sessionId);
    if (this.#ahead.delete(sessionId)) this.#append({ sessionId, stored: true });
  }

  /** The sessions that the database does not have yet. */
  get ahead(): readonly StoredSession[] {
    return [...this.#ahead].flatMap((sessionId) => this.#sessions.get(sessionId)?.session ?? []);
  }

  /** It is closed, whatever the database says. Gives what is to be called when that has nothing of it any more. */
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

  /** Whether this life of a session was closed, and the database may still have it. */
  hasClosed(session: StoredSession): boolean {
    return isClosed(this.#closed, session);
  }

  /** The database has nothing of those that were closed under this id when this daemon began. */
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

  /** Adds a line for what has changed, or writes the file anew where it is long or lacks something. */
  #append(entry: object): void {
    if (!this.#isOpen) return;
    if ((this.#isBehind || this.#lines >= this.#maxLines) && this.#rewrite()) return;
    const descriptor = this.#descriptor;
    if (descriptor === undefined) return;
    try {
      // What a failure has left of a line is ended by its own.
      const line = Buffer.from(`${this.#isBehind ? "\n" : ""}${JSON.stringify(entry)}\n`);
      const written = writeSync(descriptor, line);
      if (written < line.length) throw new Error(`Of ${line.length} bytes ${written} were written.`);
      this.#lines += 1;
    } catch (error) {
      this.#isBehind = true;
      this.#onFailure(error);
    }
  }

  /** Puts another file in its place, whole and on the disk, or leaves it as it is. It is a copy: a failure stops nothing. */
  #rewrite(): boolean {
    const temporary = `${this.#file}.new`;
    let descriptor: number | undefined;
    try {
      const lines = [heading, ...this.#all()];
      // The state directory is held by one daemon: this is what a killed one has left.
      rmSync(temporary, { force: true });
      descriptor = openSync(temporary, newFile, 0o600);
      writeFileSync(descriptor, lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
      fsyncSync(descriptor);
      renameSync(temporary, this.#file);
      this.#closeFile();
      this.#descriptor = descriptor;
      this.#isBehind = false;
      this.#lines = lines.length;
      this.#maxLines = lines.length + maxSpareLines;
      return true;
    } catch (error) {
      if (descriptor !== undefined) discard(descriptor, temporary);
      if (this.#descriptor === undefined) this.#isBehind = true;
      // It is not tried again at every line.
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
    // One that was closed may have begun again.
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

/** Never throws: the next attempt removes what stays. */
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
