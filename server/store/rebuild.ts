import { closeSync, existsSync, openSync, readSync } from "node:fs";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import type { StoreDamage } from "../../protocol/daemon.ts";
import type { Delivery } from "../../protocol/delivery.ts";
import { connect, type Parameters } from "./connection.ts";
import type { Damage } from "./damage.ts";
import { migrate, numbered } from "./migrations.ts";
import { parsed, type Row } from "./rows.ts";
import { type Salvaged, salvage } from "./salvage.ts";
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
  /** The damaged store. */
  readonly path: string;
  /** The path of the new store: an empty file. */
  readonly target: string;
  readonly damage: Damage;
  /** The number of the newest known commit. */
  readonly commits: number;
  readonly listed: ListedSessions;
  /** Looks for a session in pi's directories. */
  readonly findSession: (sessionId: string) => FoundSession | undefined;
  /** Which of these texts are in a file. */
  readonly textsIn: (file: string, texts: ReadonlySet<string>) => ReadonlySet<string>;
  readonly now: number;
}

type Counts = Pick<StoreDamage, "kept" | "lost">;

const maxNamed = 1_000;

/**
 * Builds a store from the readable rows of a damaged one, the list of sessions, and pi's session files. Throws if the
 * new one cannot be written; the damaged one is never changed.
 */
export function rebuild(options: RebuildOptions): Counts {
  const { target } = options;
  const database = connect(target);
  try {
    migrate(database);
    // The page with the schema must be in the file, not in the WAL.
    database.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    const salvaged = salvage(options.path, `${target}-source`, firstPage(target));
    database.exec("BEGIN IMMEDIATE");
    const counts = fill(database, salvaged, options);
    database.prepare("UPDATE commits SET newest = ?").run(options.commits + 1);
    database.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE);");
    return counts;
  } finally {
    database.close();
  }
}

function fill(database: DatabaseSync, salvaged: Salvaged, options: RebuildOptions): Counts {
  const { sessions, prompts, deliveries } = salvaged.rows;
  // Settled deliveries outlive their session, and only the list shows that a session was closed.
  const naming = options.listed.isThere ? deliveries.filter((row) => row["settled"] === 0) : deliveries;
  const known = new Set([...prompts, ...naming].map((row) => String(row["session_id"])));
  for (const id of salvaged.lostIds.sessions) known.add(id);
  const restored = restoreSessions(sessions, known, options);
  for (const session of restored.all.values()) insertSession(database, session);
  for (const row of prompts) insert(database, "prompts", row);
  const inTranscript = options.damage.isStale ? openInTranscripts(deliveries, restored.all, options) : new Set();
  for (const row of deliveries) {
    insert(database, "deliveries", inTranscript.has(row["delivery_id"]) ? parked(row, options.now) : row);
  }
  // Older versions stored no numbers.
  database.exec(`${numbered("deliveries", "number, created_at, rowid")};
    ${numbered("prompts", "number, created_at, prompt_id")}`);
  for (const row of salvaged.results) insert(database, "idempotency", row);
  for (const row of salvaged.closed) insert(database, "closed_sessions", row);
  return {
    kept: {
      sessions: restored.fromRows,
      sessionsFromList: restored.fromList,
      sessionsFromFiles: restored.all.size - restored.fromRows - restored.fromList,
      prompts: prompts.length,
      deliveries: deliveries.length,
    },
    lost: {
      sessionIds: [...known].filter((id) => !restored.all.has(id) && !options.listed.closed.has(id)).slice(0, maxNamed),
      promptIds: salvaged.lostIds.prompts.slice(0, maxNamed),
      deliveryIds: salvaged.lostIds.deliveries.slice(0, maxNamed),
    },
  };
}

interface Restored {
  readonly all: ReadonlyMap<string, StoredSession>;
  readonly fromRows: number;
  readonly fromList: number;
}

function restoreSessions(rows: readonly Row[], known: ReadonlySet<string>, options: RebuildOptions): Restored {
  const { sessions: list, closed } = options.listed;
  const all = new Map<string, StoredSession>();
  for (const { record } of rows) {
    const session = parsed(String(record)) as unknown as StoredSession;
    if (!isClosed(closed, session)) all.set(session.sessionId, session);
  }
  const fromRows = all.size;
  for (const [id, session] of list) if (!all.has(id)) all.set(id, session);
  const fromList = all.size - fromRows;
  for (const id of known) {
    const found = all.has(id) || closed.has(id) ? undefined : options.findSession(id);
    if (found !== undefined) all.set(id, sessionOf(id, found));
  }
  for (const [id, session] of all) all.set(id, aboveAll(session, options.now));
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

/** Open deliveries that are already in pi's session file, regardless of their stored state. */
function openInTranscripts(
  deliveries: readonly Row[],
  sessions: ReadonlyMap<string, StoredSession>,
  { textsIn }: RebuildOptions,
): ReadonlySet<unknown> {
  const open = deliveries.filter((row) => row["settled"] === 0 && isBeforeDelivered(row));
  const bySession = Map.groupBy(open, (row) => String(row["session_id"]));
  const found = new Set<unknown>();
  for (const [id, rows] of bySession) {
    const file = sessions.get(id)?.file;
    if (file === undefined) continue;
    for (const text of textsIn(file, new Set(rows.map((row) => String(row["delivery_id"]))))) found.add(text);
  }
  return found;
}

function isBeforeInsertion({ state }: Delivery): boolean {
  return state === "accepted" || state === "held";
}

function isBeforeDelivered({ record }: Row): boolean {
  const { state } = parsed(String(record)) as unknown as Delivery;
  return state === "accepted" || state === "held" || state === "inserted" || state === "prepared";
}

/** It may have been answered already: no run is started for it automatically. */
function parked(row: Row, at: number): Row {
  const delivery = parsed(String(row["record"])) as unknown as Delivery;
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
  const parked = { ...delivery, state: "parked", reason, attempts, history, insertedAt, updatedAt: at };
  const record = JSON.stringify(parked);
  return { ...row, record, record_sum: checksumOf(record) };
}

function insertSession(database: DatabaseSync, session: StoredSession): void {
  const record = JSON.stringify(session);
  const { sessionId, cwd, file, createdAt, updatedAt } = session;
  insert(database, "sessions", {
    session_id: sessionId,
    cwd,
    file,
    record,
    created_at: createdAt,
    updated_at: updatedAt,
    record_sum: checksumOf(record),
  });
}

function insert(database: DatabaseSync, table: string, values: Readonly<Record<string, unknown>>): void {
  const columns = Object.keys(values).filter((column) => column !== "row");
  const sql = `INSERT OR IGNORE INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
  const known = inserts.get(database) ?? new Map<string, StatementSync>();
  inserts.set(database, known);
  const statement = known.get(sql) ?? database.prepare(sql);
  known.set(sql, statement);
  statement.run(...(columns.map((column) => values[column]) as unknown as Parameters));
}

const inserts = new WeakMap<DatabaseSync, Map<string, StatementSync>>();

function firstPage(file: string): Buffer {
  const pageBytes = 4_096;
  const page = Buffer.alloc(pageBytes);
  const descriptor = openSync(file, "r");
  try {
    readSync(descriptor, page, 0, pageBytes, 0);
    return page;
  } finally {
    closeSync(descriptor);
  }
}

/** Whether a complete rebuilt store exists. */
export function isBuilt(file: string): boolean {
  return existsSync(file) && existsSync(`${file}.json`);
}
