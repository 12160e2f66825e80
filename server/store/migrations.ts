import type { DatabaseSync } from "node:sqlite";

const now = "CAST(unixepoch('subsec') * 1000 AS INTEGER)";

/**
 * Each step runs once, in order; the database's `user_version` counts the completed ones. Never change a step: add
 * one.
 */
const steps: readonly string[] = [
  `CREATE TABLE sessions (
     session_id TEXT PRIMARY KEY,
     cwd TEXT NOT NULL,
     file TEXT NOT NULL,
     record TEXT NOT NULL,
     created_at INTEGER NOT NULL,
     updated_at INTEGER NOT NULL
   ) STRICT;
   CREATE TABLE prompts (
     prompt_id TEXT PRIMARY KEY,
     session_id TEXT NOT NULL,
     text TEXT NOT NULL,
     state TEXT NOT NULL,
     created_at INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX prompts_by_session ON prompts (session_id);
   CREATE TABLE deliveries (
     delivery_id TEXT PRIMARY KEY,
     session_id TEXT NOT NULL,
     settled INTEGER NOT NULL,
     push TEXT NOT NULL,
     record TEXT NOT NULL,
     created_at INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX deliveries_open ON deliveries (session_id) WHERE settled = 0;
   CREATE TABLE idempotency (
     method TEXT NOT NULL,
     key TEXT NOT NULL,
     params_hash TEXT NOT NULL,
     result TEXT NOT NULL,
     at INTEGER NOT NULL,
     PRIMARY KEY (method, key)
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX idempotency_at ON idempotency (at);`,
  `CREATE INDEX deliveries_by_age ON deliveries (created_at, delivery_id);
   CREATE INDEX deliveries_by_session ON deliveries (session_id, created_at, delivery_id);`,
  // The sums are CRC-32 of the text column; NULL in rows of older versions.
  `CREATE TABLE commits (id INTEGER PRIMARY KEY, newest INTEGER NOT NULL) STRICT;
   INSERT INTO commits VALUES (1, 0);
   ALTER TABLE sessions ADD COLUMN record_sum INTEGER;
   ALTER TABLE prompts ADD COLUMN text_sum INTEGER;
   ALTER TABLE deliveries ADD COLUMN push_sum INTEGER;
   ALTER TABLE deliveries ADD COLUMN record_sum INTEGER;
   ALTER TABLE deliveries ADD COLUMN settled_at INTEGER;
   ALTER TABLE deliveries ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
   UPDATE deliveries SET bytes = length(push) + length(record), settled_at = iif(settled, created_at, NULL);
   CREATE INDEX deliveries_settled ON deliveries (settled_at, bytes) WHERE settled = 1;`,
  // Further facts about a prompt. A key's result is empty while its call is running.
  `ALTER TABLE prompts ADD COLUMN record TEXT;
   ALTER TABLE prompts ADD COLUMN record_sum INTEGER;
   ALTER TABLE prompts ADD COLUMN settled_at INTEGER;
   UPDATE prompts SET settled_at = created_at WHERE state = 'lost';
   CREATE INDEX prompts_settled ON prompts (settled_at) WHERE settled_at IS NOT NULL;
   CREATE TABLE runs (
     run_id TEXT PRIMARY KEY,
     session_id TEXT NOT NULL,
     record TEXT NOT NULL
   ) STRICT;
   CREATE INDEX runs_by_session ON runs (session_id);
   ALTER TABLE idempotency ADD COLUMN subject TEXT;`,
  // `frames` is compressed; `bytes` is the row's size in the limits. The indexes avoid reading `frames`.
  `CREATE TABLE events (
     session_id TEXT NOT NULL,
     last_seq INTEGER NOT NULL,
     first_seq INTEGER NOT NULL,
     at INTEGER NOT NULL,
     bytes INTEGER NOT NULL,
     gap TEXT,
     frames BLOB NOT NULL
   ) STRICT;
   CREATE UNIQUE INDEX events_by_session ON events (session_id, last_seq, bytes);
   CREATE INDEX events_by_age ON events (at, session_id, last_seq, bytes);`,
  `CREATE TABLE dialogs (
     dialog_id TEXT PRIMARY KEY,
     session_id TEXT NOT NULL,
     open INTEGER NOT NULL,
     record TEXT NOT NULL,
     record_sum INTEGER NOT NULL,
     opened_at INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX dialogs_by_session ON dialogs (session_id);
   CREATE INDEX dialogs_by_age ON dialogs (open, opened_at, dialog_id);`,
  `CREATE TABLE closed_sessions (
     session_id TEXT PRIMARY KEY,
     record TEXT NOT NULL,
     record_sum INTEGER NOT NULL,
     closed_at INTEGER NOT NULL
   ) STRICT;
   CREATE INDEX closed_sessions_by_age ON closed_sessions (closed_at);`,
  feedStep(),
  // The order of acceptance, independent of clocks and ids. A prompt's row is rewritten, so its rowid is not an
  // order.
  `ALTER TABLE deliveries ADD COLUMN number INTEGER;
   ALTER TABLE prompts ADD COLUMN number INTEGER;
   ${numbered("deliveries", "created_at, rowid")};
   ${numbered("prompts", "created_at, prompt_id")};
   DROP INDEX deliveries_by_age;
   DROP INDEX deliveries_by_session;
   CREATE INDEX deliveries_by_number ON deliveries (number);
   CREATE INDEX deliveries_by_session ON deliveries (session_id, number);
   DROP INDEX prompts_by_session;
   CREATE INDEX prompts_by_number ON prompts (number);
   CREATE INDEX prompts_by_session ON prompts (session_id, number);`,
  `CREATE TABLE last_answers (
     session_id TEXT PRIMARY KEY,
     record TEXT NOT NULL,
     record_sum INTEGER NOT NULL
   ) STRICT;`,
  // Each index is written with each push: the number is the rowid, and only a start reads all open deliveries.
  `ALTER TABLE deliveries RENAME TO former_deliveries;
   CREATE TABLE deliveries (
     number INTEGER PRIMARY KEY,
     delivery_id TEXT NOT NULL UNIQUE,
     session_id TEXT NOT NULL,
     settled INTEGER NOT NULL,
     settled_at INTEGER,
     bytes INTEGER NOT NULL,
     created_at INTEGER NOT NULL,
     push_sum INTEGER,
     record_sum INTEGER,
     push TEXT NOT NULL,
     record TEXT NOT NULL
   ) STRICT;
   INSERT INTO deliveries
     SELECT row_number() OVER (ORDER BY number, rowid), delivery_id, session_id, settled, settled_at, bytes, created_at,
       push_sum, record_sum, push, record FROM former_deliveries;
   DROP TABLE former_deliveries;
   CREATE INDEX deliveries_settled ON deliveries (settled_at, bytes) WHERE settled = 1;
   CREATE INDEX deliveries_by_session ON deliveries (session_id);
   ${deliverySettled()}`,
  // `place` changes with most transactions.
  `CREATE TABLE children (
     child_id TEXT PRIMARY KEY,
     facts TEXT NOT NULL,
     place TEXT NOT NULL
   ) STRICT;`,
  `CREATE TABLE summaries (
     session_id TEXT PRIMARY KEY,
     record TEXT NOT NULL,
     record_sum INTEGER NOT NULL
   ) STRICT;`,
];

/**
 * The feed. Triggers write its rows, so that each is in the transaction of the change it refers to. A row contains
 * the facts that decide who may read it, since it outlives its session. The newest row is never deleted, so that
 * numbers are not reused.
 */
function feedStep(): string {
  const session = (row: "new" | "old", state: string): string =>
    `INSERT INTO feed (at, kind, state, session_id, cwd, labels)
     VALUES (${now}, 'session', ${state}, ${row}.session_id, ${row}.cwd, ${row}.record -> '$.labels');`;
  const shown = (row: "new" | "old"): string =>
    `json_remove(${row}.record, '$.reservedSeq', '$.fileMark', '$.updatedAt')`;
  const isKnown = (row: "new" | "old"): string => `${row}.record ->> '$.isBeginning' IS NULL`;
  const dialogState = "iif(new.open = 1, 'open', 'resolved')";
  return `CREATE TABLE feed (
     seq INTEGER PRIMARY KEY,
     at INTEGER NOT NULL,
     kind TEXT NOT NULL,
     state TEXT NOT NULL,
     session_id TEXT NOT NULL,
     item_id TEXT,
     cwd TEXT,
     labels TEXT
   ) STRICT;
   CREATE TABLE feed_log (id INTEGER PRIMARY KEY, epoch TEXT NOT NULL) STRICT;
   INSERT INTO feed_log VALUES (1, lower(hex(randomblob(6))));
   CREATE TRIGGER feed_session_created AFTER INSERT ON sessions WHEN ${isKnown("new")}
   BEGIN ${session("new", "'created'")} END;
   CREATE TRIGGER feed_session_changed AFTER UPDATE OF record ON sessions
   WHEN ${isKnown("new")} AND ${shown("new")} IS NOT ${shown("old")}
   BEGIN ${session("new", `iif(${isKnown("old")}, 'changed', 'created')`)} END;
   CREATE TRIGGER feed_session_closed AFTER DELETE ON sessions WHEN ${isKnown("old")}
   BEGIN ${session("old", "'closed'")} END;
   ALTER TABLE runs ADD COLUMN outcome TEXT;
   CREATE TRIGGER feed_run_ended AFTER INSERT ON runs WHEN new.outcome IS NOT NULL
   BEGIN ${item("run", "run_id", "new.outcome")} DELETE FROM runs WHERE run_id = new.run_id; END;
   ${deliverySettled()}
   CREATE TRIGGER feed_dialog_opened AFTER INSERT ON dialogs
   BEGIN ${item("dialog", "dialog_id", dialogState)} END;
   CREATE TRIGGER feed_dialog_resolved AFTER UPDATE OF open ON dialogs WHEN new.open IS NOT old.open
   BEGIN ${item("dialog", "dialog_id", dialogState)} END;`;
}

function deliverySettled(): string {
  return `CREATE TRIGGER feed_delivery_settled AFTER UPDATE OF record ON deliveries
   WHEN new.record ->> '$.settledAt' IS NOT NULL AND new.record ->> '$.state' IS NOT old.record ->> '$.state'
   BEGIN ${item("delivery", "delivery_id", "new.record ->> '$.state'")} END;`;
}

function item(kind: string, itemId: string, state: string): string {
  return `INSERT INTO feed (at, kind, state, session_id, item_id, cwd, labels)
     SELECT ${now}, '${kind}', ${state}, new.session_id, new.${itemId}, sessions.cwd, sessions.record -> '$.labels'
     FROM (SELECT 1) LEFT JOIN sessions ON sessions.session_id = new.session_id;`;
}

/** Numbers the rows of a table in the given order. */
function numbered(table: "deliveries" | "prompts", order: string): string {
  return `UPDATE ${table} SET number = ordered.number
    FROM (SELECT rowid AS id, row_number() OVER (ORDER BY ${order}) AS number FROM ${table}) AS ordered
    WHERE ${table}.rowid = ordered.id`;
}

/** The newest schema version. */
export const schemaVersion = steps.length;

/** A newer version wrote the store: this one might misread its content. */
export class NewerStoreError extends Error {
  override readonly name = "NewerStoreError";

  constructor(shape: number) {
    super(
      `The store was written by a newer pi-rpcd (schema version ${shape}; this version supports ${schemaVersion}). Use the newer version, or another state directory.`,
    );
  }
}

/** Throws a {@link NewerStoreError}, or an error for a number that no version of this program writes. */
export function requireKnownSchema(shape: number): number {
  if (shape > schemaVersion) throw new NewerStoreError(shape);
  if (shape >= 0) return shape;
  throw new Error(
    `Its user_version is ${shape}, which no version of pi-rpcd writes: the database is damaged, or belongs to another program. Move it away, or use another state directory.`,
  );
}

/**
 * Migrates a database to the newest schema version, or to the given one. Throws a {@link NewerStoreError} if a newer
 * daemon has written it, or if the given version is newer.
 */
export function migrate(database: DatabaseSync, shape = schemaVersion): void {
  const row = database.prepare("PRAGMA user_version").get() as { user_version: number };
  const taken = requireKnownSchema(row.user_version);
  requireKnownSchema(shape);
  for (const [index, step] of steps.entries()) {
    if (index < taken || index >= shape) continue;
    database.exec("BEGIN IMMEDIATE");
    try {
      database.exec(step);
      database.exec(`PRAGMA user_version = ${index + 1}`);
      database.exec("COMMIT");
    } catch (error) {
      database.exec("ROLLBACK");
      throw error;
    }
  }
}
