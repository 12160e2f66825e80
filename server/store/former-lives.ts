import type { Database } from "./database.ts";

/** What hangs on a session beside its deliveries, which outlive it. */
const tables = ["prompts", "runs", "dialogs", "events", "last_answers"] as const;

/** Forgets what hangs on a session that was closed. What fails is made again, as where the session itself forgets it. */
export function forgetLife(database: Database, sessionId: string): readonly Promise<void>[] {
  return tables.map((table) => {
    const statement = database.prepare(`DELETE FROM ${table} WHERE session_id = ?`);
    return database.clear(`${table} of ${sessionId}`, statement, sessionId);
  });
}

/** Forgets what hangs on sessions that there are not: nobody can ask for it. */
export function forgetStrangers(database: Database): void {
  for (const table of tables) {
    const strangers = `DELETE FROM ${table} WHERE session_id NOT IN (SELECT session_id FROM sessions)`;
    void database.note(database.prepare(strangers));
  }
}
