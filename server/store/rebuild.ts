import { existsSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import type { StoreDamage } from "../../protocol/daemon.ts";
import type { Delivery } from "../../protocol/delivery.ts";
import { connect } from "./connection.ts";
import { migrate } from "./migrations.ts";
import { type Replayed, replay } from "./replay.ts";
import { parsed, type Row } from "./rows.ts";
import { isClosed, type ListedSessions } from "./session-list.ts";
import type { StoredSession } from "./stored-session.ts";
import { checksumOf } from "./sums.ts";

/** What pi's own file says about a session. */
export interface FoundSession {
  readonly file: string;
  readonly cwd: string;
  readonly createdAt: number;
}

export interface RebuildOptions {
  /** The damaged store, which is not read; its copy and its log are next to it. */
  readonly path: string;
  /** The path of the new store: an empty file. */
  readonly target: string;
  /** The damage, as a sentence. */
  readonly damage: string;
  /** The number of the newest commit according to the mark. */
  readonly noted: number;
  readonly listed: ListedSessions;
  /** Looks for a session in pi's directories. */
  readonly findSession: (sessionId: string) => FoundSession | undefined;
  /** Which of these texts are in a file. */
  readonly textsIn: (file: string, texts: ReadonlySet<string>) => ReadonlySet<string>;
  readonly now: number;
}

const maxNamed = 1_000;

export interface Rebuilt {
  /** Whether neither the copy nor the log has some of the content. */
  readonly isStale: boolean;
  readonly report: Pick<StoreDamage, "why" | "kept" | "lost">;
}

/**
 * Builds a store from the copy and the log of a damaged one, the list of sessions, and pi's session files. Throws if
 * the new one cannot be written, or the copy or the log cannot be read; none of them is changed.
 */
export function rebuild(options: RebuildOptions): Rebuilt {
  const database = connect(options.target);
  try {
    const replayed = replay(database, options.path, options.noted);
    migrate(database);
    database.exec("BEGIN IMMEDIATE");
    const isStale = replayed.missing > 0 || replayed.damagedLines > 0;
    const counts = fill(database, replayed, isStale, options);
    database.prepare("UPDATE commits SET newest = ?").run(replayed.newest + 1);
    database.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE);");
    return { isStale, report: { why: whyOf(options.damage, replayed), ...counts } };
  } finally {
    database.close();
  }
}

function whyOf(damage: string, { missing, damagedLines }: Replayed): string {
  const lost = missing > 0 ? ` ${missing} transactions are lost: neither its copy nor its log has them.` : "";
  const lines = damagedLines > 0 ? ` Its copy and its log have ${damagedLines} damaged or missing lines.` : "";
  return `${damage}${lost}${lines}`;
}

function fill(
  database: DatabaseSync,
  replayed: Replayed,
  isStale: boolean,
  options: RebuildOptions,
): Pick<StoreDamage, "kept" | "lost"> {
  const { listed } = options;
  // Settled deliveries outlive their session, and only the list shows that a session was closed.
  const naming = `SELECT session_id FROM prompts UNION SELECT session_id FROM deliveries
    ${listed.isThere ? "WHERE settled = 0" : ""}`;
  const known = columnOf(database, naming);
  const rows = columnOf(database, "SELECT record FROM sessions");
  const restored = restoreSessions(rows, known, isStale, options);
  // The feed of a new database has another name, and begins with the sessions.
  // The children have ended: what they did after the last known entry is in their session files.
  database.exec("DELETE FROM sessions; DELETE FROM feed; DELETE FROM children;");
  const insert = database.prepare(
    `INSERT INTO sessions (session_id, cwd, file, record, created_at, updated_at, record_sum)
     VALUES (?, ?, ?, ?, ?, ?, ?)`,
  );
  for (const session of restored.all.values()) {
    const { sessionId, cwd, file, createdAt, updatedAt } = session;
    const record = JSON.stringify(session);
    insert.run(sessionId, cwd, file, record, createdAt, updatedAt, checksumOf(record));
  }
  if (isStale) park(database, restored.all, options);
  return {
    kept: {
      sessions: restored.fromRows,
      sessionsFromList: restored.fromList,
      sessionsFromFiles: restored.all.size - restored.fromRows - restored.fromList,
      prompts: columnOf(database, "SELECT prompt_id FROM prompts").length,
      deliveries: columnOf(database, "SELECT delivery_id FROM deliveries").length,
    },
    lost: {
      transactions: replayed.missing,
      sessionIds: known.filter((id) => !restored.all.has(id) && !listed.closed.has(id)).slice(0, maxNamed),
    },
  };
}

function columnOf(database: DatabaseSync, sql: string): readonly string[] {
  return database
    .prepare(sql)
    .all()
    .map((row) => String(Object.values(row)[0]));
}

interface Restored {
  readonly all: ReadonlyMap<string, StoredSession>;
  readonly fromRows: number;
  readonly fromList: number;
}

function restoreSessions(
  rows: readonly string[],
  known: readonly string[],
  isStale: boolean,
  { listed, findSession, now }: RebuildOptions,
): Restored {
  const { sessions: list, closed } = listed;
  const all = new Map<string, StoredSession>();
  const leftOver = new Set<string>();
  for (const record of rows) {
    const session = parsed(record) as unknown as StoredSession;
    // The lost transactions may have closed it; the list has all others.
    if (isStale && listed.isThere && !list.has(session.sessionId)) leftOver.add(session.sessionId);
    else if (!isClosed(closed, session)) all.set(session.sessionId, session);
  }
  const fromRows = all.size;
  for (const [id, session] of list) if (!all.has(id)) all.set(id, session);
  const fromList = all.size - fromRows;
  for (const id of known) {
    const found = all.has(id) || closed.has(id) || leftOver.has(id) ? undefined : findSession(id);
    if (found !== undefined) all.set(id, sessionOf(id, found));
  }
  for (const [id, session] of all) all.set(id, aboveAll(session, now));
  return { all, fromRows, fromList };
}

/** The log may have used numbers beyond the known ones; the time in microseconds is above all of them. */
export function aboveAll(session: StoredSession, now: number): StoredSession {
  return { ...session, reservedSeq: Math.max(session.reservedSeq, now * 1_000) };
}

/** Its creation options are lost: pi takes the model from its file, and everything else is the default. */
function sessionOf(sessionId: string, { file, cwd, createdAt }: FoundSession): StoredSession {
  return { sessionId, cwd, file, generation: 1, reservedSeq: 0, options: {}, createdAt, updatedAt: createdAt };
}

/** Parks open deliveries that are already in pi's session file, because their state may be out of date. */
function park(
  database: DatabaseSync,
  sessions: ReadonlyMap<string, StoredSession>,
  { textsIn, now }: RebuildOptions,
): void {
  const open = database.prepare("SELECT delivery_id, session_id, record FROM deliveries WHERE settled = 0").all();
  const update = database.prepare("UPDATE deliveries SET record = ?, record_sum = ? WHERE delivery_id = ?");
  for (const [id, rows] of Map.groupBy(open.filter(isBeforeDelivered), (row) => String(row["session_id"]))) {
    const file = sessions.get(id)?.file;
    if (file === undefined) continue;
    const found = textsIn(file, new Set(rows.map((row) => String(row["delivery_id"]))));
    for (const { delivery_id, record } of rows) {
      if (!found.has(String(delivery_id))) continue;
      const parked = parkedRecord(String(record), now);
      update.run(parked, checksumOf(parked), String(delivery_id));
    }
  }
}

function isBeforeInsertion({ state }: Delivery): boolean {
  return state === "accepted" || state === "held";
}

function isBeforeDelivered({ record }: Row): boolean {
  const { state } = parsed(String(record)) as unknown as Delivery;
  return state === "accepted" || state === "held" || state === "inserted" || state === "prepared";
}

/** It may have been answered already: no run is started for it automatically. */
function parkedRecord(record: string, at: number): string {
  const delivery = parsed(record) as unknown as Delivery;
  const reason = {
    code: "interrupted",
    message: "The store lost its newest entries. The push is in the transcript; its outcome is unknown.",
  } as const;
  const attempts = delivery.attempts.map((attempt) =>
    attempt.outcome === undefined ? { ...attempt, outcome: "unknown" as const, endedAt: at } : attempt,
  );
  const insertedAt = delivery.insertedAt ?? at;
  const inserted = isBeforeInsertion(delivery) ? [{ state: "inserted" as const, at }] : [];
  const history = [...delivery.history, ...inserted, { state: "parked" as const, at, reason }].slice(-64);
  return JSON.stringify({ ...delivery, state: "parked", reason, attempts, history, insertedAt, updatedAt: at });
}

/** Whether a complete rebuilt store exists. */
export function isBuilt(file: string): boolean {
  return existsSync(file) && existsSync(`${file}.json`);
}
