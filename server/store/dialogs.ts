import type { Dialog } from "../../protocol/dialog.ts";
import type { Database } from "./database.ts";
import { checksumOf, isSound } from "./sums.ts";

export interface StoredDialog extends Dialog {
  /** The call that answered it. */
  readonly callId?: string | undefined;
}

/** Open dialogs, and the newest ended ones. */
export class DialogStore {
  readonly #database: Database;
  readonly #put;
  readonly #get;
  readonly #open;
  readonly #deleteOf;
  readonly #limit;

  constructor(database: Database) {
    this.#database = database;
    this.#put = database.prepare(
      `INSERT INTO dialogs (dialog_id, session_id, open, record, record_sum, opened_at) VALUES (?, ?, ?, ?, ?, ?)
       ON CONFLICT (dialog_id) DO UPDATE SET open = excluded.open, record = excluded.record,
         record_sum = excluded.record_sum`,
    );
    this.#get = database.prepare("SELECT record, record_sum AS sum FROM dialogs WHERE dialog_id = ?");
    this.#open = database.prepare(
      "SELECT record, record_sum AS sum FROM dialogs WHERE open = 1 ORDER BY opened_at, dialog_id",
    );
    this.#deleteOf = database.prepare("DELETE FROM dialogs WHERE session_id = ?");
    this.#limit = database.prepare(
      `DELETE FROM dialogs WHERE open = 0 AND dialog_id NOT IN
         (SELECT dialog_id FROM dialogs WHERE open = 0 ORDER BY opened_at DESC, dialog_id DESC LIMIT ?)`,
    );
  }

  /**
   * Resolves when it is on disk. When it rejects, the newest record is retried as soon as the store works again.
   * `isAwaited`: an answer waits for it.
   */
  put(dialog: StoredDialog, isAwaited = false): Promise<void> {
    if (isAwaited) this.#database.commitSoon();
    const { dialogId, sessionId, state, openedAt } = dialog;
    const record = JSON.stringify(dialog);
    const isOpen = state === "open" ? 1 : 0;
    const sum = checksumOf(record);
    return this.#database.keep(`dialog ${dialogId}`, this.#put, dialogId, sessionId, isOpen, record, sum, openedAt);
  }

  get(dialogId: string): StoredDialog | undefined {
    const row = this.#get.get(dialogId);
    return row === undefined ? undefined : parse(row);
  }

  /** Dialogs that a killed daemon left open, oldest first. */
  open(): readonly Dialog[] {
    return this.#open.all().flatMap((row) => parse(row) ?? []);
  }

  deleteOf(sessionId: string): Promise<void> {
    return this.#database.clear(`dialogs of ${sessionId}`, this.#deleteOf, sessionId);
  }

  /** Limits the number of ended dialogs. */
  limit(maxResolved: number): Promise<void> {
    return this.#database.keep("ended dialogs", this.#limit, maxResolved);
  }
}

/** A damaged record counts as deleted: no client waits for the dialog any more. */
function parse({ record, sum }: Readonly<Record<string, unknown>>): StoredDialog | undefined {
  return isSound(record, sum) ? (JSON.parse(record) as StoredDialog) : undefined;
}
