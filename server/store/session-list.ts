import { closeSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from "node:fs";
import { parsed } from "./rows.ts";
import type { StoredSession } from "./sessions.ts";

/** After so many lines beyond one for each session the file is written anew. */
const maxSpareLines = 10_000;

/**
 * What sessions there are, in a file of its own: a line of JSON for each session that has begun or changed in what cannot
 * be found elsewhere, and for each that was closed. It is read when the database has lost them, and for those that it
 * never had: a store that fails may get a session's row long after clients know the session, or not at all.
 */
export class SessionList {
  readonly #file: string;
  readonly #onFailure: (error: unknown) => void;
  /** What stands in the file of each session, apart from what changes all the time. */
  readonly #written = new Map<string, string>();
  /** The sessions that the database does not have yet. */
  readonly #ahead = new Map<string, StoredSession>();
  #descriptor: number | undefined;
  #lines = 0;

  constructor(file: string, onFailure: (error: unknown) => void) {
    this.#file = file;
    this.#onFailure = onFailure;
  }

  /** What the file says of all sessions. A line that is none is passed over: the file may have been torn, too. */
  static read(file: string): ReadonlyMap<string, StoredSession> {
    return SessionList.#read(file).sessions;
  }

  /** The sessions that the database may never have got. */
  static ahead(file: string): readonly StoredSession[] {
    const { sessions, ahead } = SessionList.#read(file);
    return [...sessions.values()].filter(({ sessionId }) => ahead.has(sessionId));
  }

  static #read(file: string) {
    const sessions = new Map<string, StoredSession>();
    const ahead = new Set<string>();
    for (const line of textOf(file).split("\n")) {
      const entry = parsed(line);
      const id = entry?.["sessionId"];
      if (typeof id !== "string") continue;
      if (entry?.["closed"] === true) sessions.delete(id);
      if (entry?.["closed"] === true || entry?.["stored"] === true) ahead.delete(id);
      else if (isStoredSession(entry)) {
        const { stored, ...session } = entry as Line;
        sessions.set(id, session);
        if (stored === false) ahead.add(id);
      }
    }
    return { sessions, ahead };
  }

  /** Writes the file anew, with the sessions that the database has, and with those that it does not have yet. */
  begin(stored: readonly StoredSession[], ahead: readonly StoredSession[] = [...this.#ahead.values()]): void {
    for (const session of ahead) this.#ahead.set(session.sessionId, session);
    for (const { sessionId } of stored) this.#ahead.delete(sessionId);
    const left = [...this.#ahead.values()];
    this.#attempt(() => {
      const temporary = `${this.#file}.${process.pid}`;
      const sessions = [...stored, ...left];
      const lines = [...stored, ...left.map((session): Line => ({ ...session, stored: false }))];
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
      writeFileSync(temporary, text, { mode: 0o600 });
      renameSync(temporary, this.#file);
      this.close();
      this.#descriptor = openSync(this.#file, "a", 0o600);
      this.#written.clear();
      for (const session of sessions) this.#written.set(session.sessionId, lasting(session));
      this.#lines = sessions.length;
    });
  }

  put(session: StoredSession): void {
    const { sessionId } = session;
    const text = lasting(session);
    if (!this.#written.has(sessionId) || this.#ahead.has(sessionId)) this.#ahead.set(sessionId, session);
    if (this.#written.get(sessionId) === text) return;
    this.#append(this.#ahead.has(sessionId) ? { ...session, stored: false } : session);
    this.#written.set(sessionId, text);
  }

  /** The database has it from now on. */
  stored(sessionId: string): void {
    if (this.#ahead.delete(sessionId)) this.#append({ sessionId, stored: true });
  }

  /** The sessions that the database does not have yet. */
  get ahead(): readonly StoredSession[] {
    return [...this.#ahead.values()];
  }

  delete(sessionId: string): void {
    this.#ahead.delete(sessionId);
    if (this.#written.delete(sessionId)) this.#append({ sessionId, closed: true });
  }

  /** Whether there are so many lines that the file is to be begun anew. */
  get isLong(): boolean {
    return this.#lines > this.#written.size + maxSpareLines;
  }

  close(): void {
    if (this.#descriptor !== undefined) closeSync(this.#descriptor);
    this.#descriptor = undefined;
  }

  #append(entry: object): void {
    const descriptor = this.#descriptor;
    if (descriptor === undefined) return;
    this.#attempt(() => {
      writeSync(descriptor, `${JSON.stringify(entry)}\n`);
      this.#lines += 1;
    });
  }

  /** It is a copy: what cannot be written of it stops nothing. */
  #attempt(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#onFailure(error);
    }
  }
}

/** `stored: false`: the database does not have it yet. */
type Line = StoredSession & { readonly stored?: boolean };

function lasting({
  reservedSeq: _seq,
  generation: _generation,
  updatedAt: _at,
  fileMark: _mark,
  ...rest
}: StoredSession): string {
  return JSON.stringify(rest);
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
