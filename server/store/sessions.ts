import type { Database } from "./database.ts";

/** What is kept of a session across daemons. */
export interface StoredSession {
  readonly sessionId: string;
  readonly cwd: string;
  readonly file: string;
  readonly name?: string;
  readonly generation: number;
  /** The highest number that the session's log may have given. */
  readonly reservedSeq: number;
  /** What pi was started with, to start it in the same way again. */
  readonly options: {
    readonly model?: string;
    readonly thinking?: string;
    readonly name?: string;
    readonly tools?: readonly string[];
    readonly excludeTools?: readonly string[];
    readonly approve?: boolean;
  };
  readonly createdAt: number;
  readonly updatedAt: number;
}

export class SessionStore {
  readonly #database: Database;
  readonly #put;
  readonly #delete;
  readonly #all;

  constructor(database: Database) {
    this.#database = database;
    this.#put = database.prepare(
      `INSERT INTO sessions (session_id, cwd, file, record, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (session_id) DO UPDATE SET file = excluded.file, record = excluded.record, updated_at = excluded.updated_at`,
    );
    this.#delete = database.prepare("DELETE FROM sessions WHERE session_id = ?");
    this.#all = database.prepare("SELECT record FROM sessions ORDER BY created_at");
  }

  put(session: StoredSession): Promise<void> {
    return this.#database.write(
      this.#put,
      session.sessionId,
      session.cwd,
      session.file,
      JSON.stringify(session),
      session.createdAt,
      session.updatedAt,
    );
  }

  /** Brings to disk, now, what was put. */
  flush(): void {
    this.#database.flush();
  }

  delete(sessionId: string): Promise<void> {
    return this.#database.write(this.#delete, sessionId);
  }

  all(): readonly StoredSession[] {
    return this.#all.all().map((row) => JSON.parse(row["record"] as string) as StoredSession);
  }
}
