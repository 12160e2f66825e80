import type { By } from "../../protocol/client-identity.ts";
import type { RunOutcome } from "../../protocol/prompt.ts";
import type { Database } from "./database.ts";
import { PendingWrites } from "./queued.ts";

/** A running run. */
export interface OpenRun {
  readonly runId: string;
  readonly startedAt: number;
  readonly promptIds: readonly string[];
  readonly by?: By;
  /** A client's abort was sent to pi. `isLate`: a message was finished since then. */
  readonly abort?: { readonly by?: By; readonly isLate?: true };
}

/** Running runs, so that the next daemon can report that they were interrupted. */
export class RunStore {
  readonly #database: Database;
  readonly #queued = new PendingWrites();
  readonly #put;
  readonly #end;
  readonly #select;

  constructor(database: Database) {
    this.#database = database;
    this.#put = database.prepare("INSERT OR REPLACE INTO runs (run_id, session_id, record) VALUES (?, ?, ?)");
    // A trigger writes it to the feed, and deletes the row.
    this.#end = database.prepare(
      "INSERT OR REPLACE INTO runs (run_id, session_id, record, outcome) VALUES (?, ?, '', ?)",
    );
    this.#select = database.prepare("SELECT record FROM runs WHERE session_id = ? ORDER BY rowid");
  }

  /** Unsynced: the prompts of a lost run end as interrupted anyway. `isAwaited`: an answer waits for it. */
  put(sessionId: string, run: OpenRun, isAwaited = false): Promise<void> {
    if (isAwaited) this.#database.commitSoon();
    const key = `run ${run.runId}`;
    const written = this.#database.keepUnsynced(key, this.#put, run.runId, sessionId, JSON.stringify(run));
    return this.#queued.until(written, sessionId);
  }

  /** Deletes an ended run here; the feed has its outcome. */
  end(sessionId: string, runId: string, outcome: RunOutcome): Promise<void> {
    const written = this.#database.keep(`run ${runId}`, this.#end, runId, sessionId, outcome);
    return this.#queued.until(written, sessionId);
  }

  /** Throws `store_failed` if the disk does not respond. */
  of(sessionId: string): readonly OpenRun[] {
    this.#queued.settle(this.#database, sessionId);
    return this.#select.all(sessionId).map(({ record }) => JSON.parse(String(record)) as OpenRun);
  }
}
