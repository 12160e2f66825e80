import { ClosedSessions } from "./closed-sessions.ts";
import type { Database } from "./database.ts";
import { isClosed, type ListedSessions, type SessionList } from "./session-list.ts";
import { SessionTextStore } from "./session-texts.ts";
import type { StoredSession } from "./stored-session.ts";
import { checksumOf, isSound } from "./sums.ts";

/** Tables with rows of a session, except its deliveries, which outlive it. */
const ownedTables = ["prompts", "runs", "dialogs", "events", "last_answers", "summaries"] as const;

export class SessionStore {
  /** Options with which closed sessions are reopened. */
  readonly closed: ClosedSessions;
  /** The last answers of each session's pi. */
  readonly answers: SessionTextStore;
  readonly summaries: SessionTextStore;
  readonly #database: Database;
  readonly #put;
  readonly #delete;
  readonly #all;
  readonly #get;

  readonly #list: SessionList | undefined;
  /** The newest records. */
  readonly #newest = new Map<string, StoredSession>();
  /** Ids of the sessions that existed at the start, without those whose rows were left over from a closed one. */
  readonly #known: ReadonlySet<string>;

  /**
   * `list` is the copy for a database that has lost its sessions, and `listed` is its content: sessions without a row
   * get one, and closed ones lose theirs, with all their rows except deliveries.
   */
  constructor(database: Database, list?: SessionList, listed?: Pick<ListedSessions, "ahead" | "closed">) {
    this.#database = database;
    this.closed = new ClosedSessions(database);
    this.answers = new SessionTextStore(database, "last_answers");
    this.summaries = new SessionTextStore(database, "summaries");
    this.#list = list;
    this.#put = database.prepare(
      `INSERT INTO sessions (session_id, cwd, file, record, created_at, updated_at, record_sum)
       VALUES (?, ?, ?, ?, ?, ?, ?)
       ON CONFLICT (session_id) DO UPDATE SET file = excluded.file, record = excluded.record,
         record_sum = excluded.record_sum, updated_at = excluded.updated_at`,
    );
    this.#delete = database.prepare("DELETE FROM sessions WHERE session_id = ?");
    this.#all = database.prepare("SELECT record, record_sum AS sum FROM sessions ORDER BY created_at");
    this.#get = database.prepare("SELECT record FROM sessions WHERE session_id = ?");
    const { ahead, closed } = listed ?? { ahead: [], closed: new Map<string, never>() };
    const stored = this.#rows();
    const rows = stored.filter((session) => !isClosed(closed, session));
    // Closed by a daemon whose store failed.
    for (const session of stored) if (isClosed(closed, session)) void this.closed.put(session).catch(() => {});
    const known = new Set(rows.map(({ sessionId }) => sessionId));
    // Rows of other sessions are orphans.
    const mayHave = new Set([...stored, ...ahead].map(({ sessionId }) => sessionId));
    const owed = new Map([...closed].filter(([id]) => mayHave.has(id) && !known.has(id)));
    list?.begin(rows, ahead, owed);
    for (const id of owed.keys()) this.#deleteRows(id);
    for (const session of list?.ahead ?? []) {
      void this.put(session);
      if (!closed.has(session.sessionId)) known.add(session.sessionId);
    }
    this.#deleteOrphans();
    // So that later reads do not find them.
    database.flush();
    this.#known = known;
  }

  /** Whether rows of this id that existed when the daemon started belong to a session that no longer exists. */
  isOrphaned(sessionId: string): boolean {
    return !this.#known.has(sessionId);
  }

  /**
   * Resolves when it is on disk, unsynced if an older record does no harm. When it rejects, the newest record is retried
   * as soon as the store works again. `isAwaited`: an answer waits for it.
   */
  put(session: StoredSession, isAwaited = false): Promise<void> {
    this.#list?.put(session);
    const former = this.#newest.get(session.sessionId);
    this.#newest.set(session.sessionId, session);
    const record = JSON.stringify(session);
    const { sessionId, cwd, file, createdAt, updatedAt } = session;
    const values = [sessionId, cwd, file, record, createdAt, updatedAt, checksumOf(record)] as const;
    if (isAwaited) this.#database.commitSoon();
    const stored =
      former !== undefined && mayBeOlder(former, session)
        ? this.#database.keepUnsynced(keyOf(sessionId), this.#put, ...values)
        : this.#database.keep(keyOf(sessionId), this.#put, ...values);
    void stored.then(
      () => this.#list?.stored(session),
      () => {},
    );
    return stored;
  }

  /** Writes and syncs now. Returns whether numbers of the session are reserved on disk up to `upTo`. */
  flush(sessionId: string, upTo: number): boolean {
    if (!this.#database.flush() || this.#database.health.state !== "open") return false;
    const row = this.#get.get(sessionId);
    return row !== undefined && (JSON.parse(String(row["record"])) as StoredSession).reservedSeq >= upTo;
  }

  /** Like {@link put}. */
  delete(sessionId: string): Promise<void> {
    this.#newest.delete(sessionId);
    const onDeleted = this.#list?.delete(sessionId) ?? (() => {});
    const deleted = this.#database.clear(keyOf(sessionId), this.#delete, sessionId);
    deleted.then(onDeleted, () => {});
    return deleted;
  }

  /** Includes unwritten sessions, and excludes closed ones, even if the database does not know yet. */
  all(): readonly StoredSession[] {
    const rows = this.#rows().filter((session) => this.#list?.hasClosed(session) !== true);
    const known = new Set(rows.map(({ sessionId }) => sessionId));
    return [...rows, ...(this.#list?.ahead ?? []).filter(({ sessionId }) => !known.has(sessionId))];
  }

  /** Not awaited: failures are retried. */
  #deleteRows(sessionId: string): void {
    const deleted = this.#database.clear(keyOf(sessionId), this.#delete, sessionId);
    Promise.all([deleted, ...this.#deleteReferences(sessionId)]).then(
      () => this.#list?.forgotten(sessionId),
      () => {},
    );
  }

  /** Failures are retried. */
  #deleteReferences(sessionId: string): readonly Promise<void>[] {
    return ownedTables.map((table) => {
      const statement = this.#database.prepare(`DELETE FROM ${table} WHERE session_id = ?`);
      return this.#database.clear(`${table} of ${sessionId}`, statement, sessionId);
    });
  }

  /** Deletes rows of sessions that do not exist: no client can query them. */
  #deleteOrphans(): void {
    for (const table of ownedTables) {
      const orphans = `DELETE FROM ${table} WHERE session_id NOT IN (SELECT session_id FROM sessions)`;
      void this.#database.note(this.#database.prepare(orphans));
    }
  }

  #rows(): readonly StoredSession[] {
    this.#database.flush();
    return this.#all.all().map(({ record, sum }) => {
      if (!isSound(record, sum)) throw new Error("A session in the store is damaged.");
      return JSON.parse(record) as StoredSession;
    });
  }
}

/**
 * Whether a daemon that finds the former record is right too. A higher reservation is not found: its numbers may be
 * used. An open mark stands for any write of the session's own children. All other fields are in the feed.
 */
function mayBeOlder(former: StoredSession, session: StoredSession): boolean {
  if (session.reservedSeq > former.reservedSeq) return false;
  if (former.fileMark?.isOpen !== true && session.fileMark !== former.fileMark) return false;
  return shownIn(former) === shownIn(session);
}

/** What the feed reports a change of; see `migrations.ts`. */
function shownIn(session: StoredSession): string {
  const { reservedSeq: _seq, fileMark: _mark, updatedAt: _at, ...shown } = session;
  return JSON.stringify(shown);
}

function keyOf(sessionId: string): string {
  return `session ${sessionId}`;
}
