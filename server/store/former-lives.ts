import type { Database } from "./database.ts";

/** Rows of a session, except its deliveries, which outlive it. */
const tables = ["prompts", "runs", "dialogs", "events", "last_answers"] as const;

/** Deletes the rows of a closed session. Failures are retried, like deletions by the session itself. */
export function forgetLife(database: Database, sessionId: string): readonly Promise<void>[] {
  return tables.map((table) => {
    const statement = database.prepare(`DELETE FROM ${table} WHERE session_id = ?`);
    return database.clear(`${table} of ${sessionId}`, statement, sessionId);
  });
}

/** Deletes rows of sessions that do not exist: no client can query them. */
export function forgetStrangers(database: Database): void {
  for (const table of tables) {
    const strangers = `DELETE FROM ${table} WHERE session_id NOT IN (SELECT session_id FROM sessions)`;
    void database.note(database.prepare(strangers));
  }
}
