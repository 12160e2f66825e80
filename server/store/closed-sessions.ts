import { existsSync } from "node:fs";
import { WireError } from "../../protocol/errors.ts";
import type { Database } from "./database.ts";
import type { StoredSession } from "./stored-session.ts";
import { checksumOf, isSound } from "./sums.ts";

/** The stored options of a closed session: its rights, visibility and control policy. */
export type ClosedSession = Pick<
  StoredSession,
  | "options"
  | "profile"
  | "labels"
  | "delegatedBy"
  | "ownPruning"
  | "onForeignWrite"
  | "control"
  | "dialogPolicy"
  | "idleAfterMs"
>;

/** Maximum number of closed sessions; the oldest are deleted. */
const maxClosedSessions = 10_000;

/**
 * The creation options of closed sessions by id: pi's session files do not contain tools, system prompts or trust,
 * and a reopened session must not gain rights.
 */
export class ClosedSessions {
  readonly #database: Database;
  readonly #put;
  readonly #limit;
  readonly #delete;
  readonly #get;
  readonly #maxClosed: number;
  /** Records that the database may not have yet. */
  readonly #unwritten = new Map<string, ClosedSession>();

  constructor(database: Database, maxClosed = maxClosedSessions) {
    this.#database = database;
    this.#maxClosed = maxClosed;
    this.#put = database.prepare(
      "INSERT OR REPLACE INTO closed_sessions (session_id, record, record_sum, closed_at) VALUES (?, ?, ?, ?)",
    );
    // Ordered by closing, not by a clock, which can be set: each gets the next rowid.
    this.#limit = database.prepare(
      `DELETE FROM closed_sessions WHERE rowid <=
         (SELECT rowid FROM closed_sessions ORDER BY rowid DESC LIMIT 1 OFFSET ?)`,
    );
    this.#delete = database.prepare("DELETE FROM closed_sessions WHERE session_id = ?");
    this.#get = database.prepare("SELECT record, record_sum AS sum FROM closed_sessions WHERE session_id = ?");
  }

  /** Resolves when it is on disk. Failed writes are retried. A session whose file is missing cannot be reopened. */
  async put({ sessionId, file, ephemeral, ...session }: StoredSession): Promise<void> {
    if (ephemeral === true || !existsSync(file)) return;
    const closed = closedSession(session);
    this.#unwritten.set(sessionId, closed);
    const record = JSON.stringify(closed);
    await this.#database.keep(keyOf(sessionId), this.#put, sessionId, record, checksumOf(record), Date.now());
    if (this.#unwritten.get(sessionId) === closed) this.#unwritten.delete(sessionId);
    void this.#database.note(this.#limit, this.#maxClosed).catch(() => {});
  }

  /** Throws `store_failed` if the record is damaged. */
  get(sessionId: string): ClosedSession | undefined {
    const unwritten = this.#unwritten.get(sessionId);
    if (unwritten !== undefined) return unwritten;
    const row = this.#get.get(sessionId);
    if (row === undefined) return undefined;
    const { record, sum } = row;
    if (isSound(record, sum)) return JSON.parse(record) as ClosedSession;
    throw new WireError("store_failed", `The store's record of the closed session ${sessionId} is damaged.`);
  }

  /** For a session whose file was deleted. */
  async delete(sessionId: string): Promise<void> {
    this.#unwritten.delete(sessionId);
    await this.#database.keep(keyOf(sessionId), this.#delete, sessionId);
  }
}

/** Model, thinking level and name are in the session's file. */
export function closedSession(session: Omit<StoredSession, "sessionId" | "file">): ClosedSession {
  const { profile, labels, delegatedBy, ownPruning, onForeignWrite, control, dialogPolicy, idleAfterMs } = session;
  const { model: _model, thinking: _thinking, name: _name, ...options } = session.options;
  return {
    options,
    ...(profile === undefined ? {} : { profile }),
    ...(labels === undefined ? {} : { labels }),
    ...(delegatedBy === undefined ? {} : { delegatedBy }),
    ...(ownPruning === undefined ? {} : { ownPruning }),
    ...(onForeignWrite === undefined ? {} : { onForeignWrite }),
    ...(control === undefined ? {} : { control }),
    ...(dialogPolicy === undefined ? {} : { dialogPolicy }),
    ...(idleAfterMs === undefined ? {} : { idleAfterMs }),
  };
}

function keyOf(sessionId: string): string {
  return `closed session ${sessionId}`;
}
