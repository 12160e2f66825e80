import type { ContextSummary } from "../../protocol/context-option.ts";
import type { ControlPolicy } from "../../protocol/control.ts";
import type { OnForeignWrite } from "../../protocol/custody.ts";
import type { DialogPolicy } from "../../protocol/dialog.ts";
import type { PruningOptions } from "../../protocol/pruning/options.ts";
import type { Labels, Profile } from "../../protocol/session-options.ts";
import { ClosedSessions } from "./closed-sessions.ts";
import type { Database } from "./database.ts";
import { forgetLife, forgetStrangers } from "./former-lives.ts";
import { LastAnswersStore } from "./last-answers.ts";
import { isClosed, type ListedSessions, type SessionList } from "./session-list.ts";
import { isSound, sumOf } from "./sums.ts";

export type StoredOptions = Readonly<Omit<Profile, "provider" | "ephemeral" | "labels" | "thinking">> & {
  /** As pi names it. */
  readonly thinking?: string;
};

/** The past that a session was given. None of its text is here. */
export interface StoredContext {
  readonly summary: ContextSummary;
  /** SHA-256 of the text of the user's last message, until a prompt follows it. */
  readonly unanswered?: string;
  /** In ephemeral mode: what each pi of the session gets, as it lies in the daemon's directory. */
  readonly kept?: { readonly bytes: number; readonly sha256: string };
}

/** What is kept of a session across daemons. */
export interface StoredSession {
  readonly sessionId: string;
  readonly cwd: string;
  readonly file: string;
  /** The file was there before the session: it stays, whatever is in it. */
  readonly isOpened?: boolean;
  readonly name?: string;
  readonly generation: number;
  /** The highest number that the session's log may have given. */
  readonly reservedSeq: number;
  /** The name of that log. */
  readonly logEpoch?: string;
  /** What pi was started with, to start it in the same way again. */
  readonly options: StoredOptions;
  /** It is in its pi's memory alone, and `file` never exists. */
  readonly ephemeral?: true;
  readonly profile?: string;
  readonly labels?: Labels;
  readonly context?: StoredContext;
  /** The session on whose behalf it works. */
  readonly delegatedBy?: string;
  /** Of `options.pruning` what callers gave, to put it on top of other layers again. */
  readonly ownPruning?: PruningOptions;
  /** Default: `reload`. */
  readonly onForeignWrite?: OnForeignWrite;
  /** The file as the session's children have left it; see `server/custody/file-watch.ts`. */
  readonly fileMark?: {
    readonly size: number;
    readonly inode: number;
    readonly mtimeMs: number;
    readonly read: number;
    readonly tailSum: number;
    readonly lastId?: string;
    readonly isOpen: boolean;
  };
  /** Where it is not shared by all clients. */
  readonly control?: ControlPolicy;
  /** What becomes of a dialog that nobody can answer. Default: as `dialog-policy.ts` says. */
  readonly dialogPolicy?: DialogPolicy;
  /** It is being created, and no client knows it. One that a killed daemon was creating is there from the next start on. */
  readonly isBeginning?: true;
  /** How long its child may be idle; 0: for ever. Absent: as the daemon has it. */
  readonly idleAfterMs?: number;
  readonly createdAt: number;
  readonly updatedAt: number;
}

export class SessionStore {
  /** What closed sessions are opened with again. */
  readonly closed: ClosedSessions;
  readonly answers: LastAnswersStore;
  readonly #database: Database;
  readonly #put;
  readonly #delete;
  readonly #all;
  readonly #get;

  readonly #list: SessionList | undefined;
  /** The ids of the sessions that there are at the start, of which no former life is left over. */
  readonly #known: ReadonlySet<string>;

  /**
   * `list` is the copy that is read where the database has lost its sessions, and `listed` what it says: sessions of which
   * there is no row get one, and those that were closed lose theirs, with all that hangs on it but their deliveries.
   */
  constructor(database: Database, list?: SessionList, listed?: Pick<ListedSessions, "ahead" | "closed">) {
    this.#database = database;
    this.closed = new ClosedSessions(database);
    this.answers = new LastAnswersStore(database);
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
    // Closed by a daemon whose store could not be written.
    for (const session of stored) if (isClosed(closed, session)) void this.closed.put(session).catch(() => {});
    const known = new Set(rows.map(({ sessionId }) => sessionId));
    // Of the others nothing is left that is not a stranger's.
    const mayHave = new Set([...stored, ...ahead].map(({ sessionId }) => sessionId));
    const owed = new Map([...closed].filter(([id]) => mayHave.has(id) && !known.has(id)));
    list?.begin(rows, ahead, owed);
    for (const id of owed.keys()) this.#forgetLife(id);
    for (const session of list?.ahead ?? []) {
      void this.put(session);
      if (!closed.has(session.sessionId)) known.add(session.sessionId);
    }
    forgetStrangers(database);
    // What is loaded next shall find none of it.
    database.flush();
    this.#known = known;
  }

  /** When the daemon began: whether what hung on a session of this id is left over from one that is gone. */
  wasGone(sessionId: string): boolean {
    return !this.#known.has(sessionId);
  }

  /** Resolves when it is on disk. When it rejects, the newest record is written again as soon as the store is back. */
  put(session: StoredSession): Promise<void> {
    this.#list?.put(session);
    const record = JSON.stringify(session);
    const { sessionId, cwd, file, createdAt, updatedAt } = session;
    const stored = this.#database.keep(
      keyOf(sessionId),
      this.#put,
      sessionId,
      cwd,
      file,
      record,
      createdAt,
      updatedAt,
      sumOf(record),
    );
    void stored.then(
      () => this.#list?.stored(session),
      () => {},
    );
    return stored;
  }

  /** Brings to disk, now, what was put. Gives whether a session's numbers are reserved there up to `upTo`. */
  flush(sessionId: string, upTo: number): boolean {
    if (!this.#database.flush() || this.#database.health.state !== "open") return false;
    const row = this.#get.get(sessionId);
    return row !== undefined && (JSON.parse(String(row["record"])) as StoredSession).reservedSeq >= upTo;
  }

  /** As {@link put}. */
  delete(sessionId: string): Promise<void> {
    const onDeleted = this.#list?.delete(sessionId) ?? (() => {});
    const deleted = this.#database.clear(keyOf(sessionId), this.#delete, sessionId);
    deleted.then(onDeleted, () => {});
    return deleted;
  }

  /** Also those that could not be written yet, and none that was closed, whether the database knows that or not. */
  all(): readonly StoredSession[] {
    const rows = this.#rows().filter((session) => this.#list?.hasClosed(session) !== true);
    const known = new Set(rows.map(({ sessionId }) => sessionId));
    return [...rows, ...(this.#list?.ahead ?? []).filter(({ sessionId }) => !known.has(sessionId))];
  }

  /** Nobody waits for it: what fails is made again. */
  #forgetLife(sessionId: string): void {
    const deleted = this.#database.clear(keyOf(sessionId), this.#delete, sessionId);
    Promise.all([deleted, ...forgetLife(this.#database, sessionId)]).then(
      () => this.#list?.forgotten(sessionId),
      () => {},
    );
  }

  #rows(): readonly StoredSession[] {
    this.#database.flush();
    return this.#all.all().map(({ record, sum }) => {
      if (!isSound(record, sum)) throw new Error("A session in the store is damaged.");
      return JSON.parse(record) as StoredSession;
    });
  }
}

function keyOf(sessionId: string): string {
  return `session ${sessionId}`;
}
