import { closeSync, openSync, readFileSync, renameSync, writeFileSync, writeSync } from "node:fs";
import { parsed } from "./rows.ts";
import type { StoredSession } from "./sessions.ts";

/** After so many lines beyond one for each session the file is written anew. */
const maxSpareLines = 10_000;

/**
 * What sessions there are, in a file of its own: a line of JSON for each session that has begun or changed in what cannot
 * be found elsewhere, and for each that was closed. It is read only when the database has lost them.
 */
export class SessionList {
  readonly #file: string;
  readonly #onFailure: (error: unknown) => void;
  /** What stands in the file of each session, apart from what changes all the time. */
  readonly #written = new Map<string, string>();
  #descriptor: number | undefined;
  #lines = 0;

  constructor(file: string, onFailure: (error: unknown) => void) {
    this.#file = file;
    this.#onFailure = onFailure;
  }

  /** What the file says. A line that is none is passed over: the file may have been torn, too. */
  static read(file: string): ReadonlyMap<string, StoredSession> {
    const sessions = new Map<string, StoredSession>();
    for (const line of textOf(file).split("\n")) {
      const entry = parsed(line);
      const id = entry?.["sessionId"];
      if (typeof id !== "string") continue;
      if (entry?.["closed"] === true) sessions.delete(id);
      else if (isStoredSession(entry)) sessions.set(id, entry);
    }
    return sessions;
  }

  /** Writes the file anew, with these sessions. */
  begin(sessions: readonly StoredSession[]): void {
    this.#attempt(() => {
      const temporary = `${this.#file}.${process.pid}`;
      const text = sessions.map((session) => `${JSON.stringify(session)}\n`).join("");
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
    const text = lasting(session);
    if (this.#written.get(session.sessionId) === text) return;
    this.#append(session);
    this.#written.set(session.sessionId, text);
  }

  delete(sessionId: string): void {
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
