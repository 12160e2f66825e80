import { WireError } from "../../protocol/errors.ts";
import type { Prompt, PromptState } from "../../protocol/prompt.ts";
import type { Database } from "./database.ts";
import { PendingWrites } from "./queued.ts";
import { steadyNow } from "./retention-clock.ts";
import { RunStore } from "./runs.ts";
import { checksumOf, isSound } from "./sums.ts";

/** A stored prompt: with its complete text until the text is in the transcript. */
export interface StoredPrompt extends Prompt {
  /** Identifies the prompt: its text, images, and behaviour during a run. */
  readonly hash: string;
  /** Its place in pi's queue. Without `text`: pi has not rewritten it. */
  readonly place?: { readonly kind: "steering" | "followUp"; readonly text?: string };
  readonly hasImages?: boolean;
}

/** Characters of a text that are kept, and reported, once its outcome is known. */
export const maxExcerptLength = 1_000;

const unsettled: ReadonlySet<PromptState> = new Set(["stored", "started", "queued"]);

/** Whether neither its state nor its run can change any more. */
export function isOver({ state, outcome }: Prompt): boolean {
  return !unsettled.has(state) && (state !== "inserted" || outcome !== undefined);
}

interface PromptRow {
  readonly promptId: string;
  readonly sessionId: string;
  readonly text: string;
  readonly state: PromptState;
  readonly createdAt: number;
  readonly sum: number | null;
  readonly record: string | null;
}

const columns = `prompt_id AS promptId, session_id AS sessionId, text, state, created_at AS createdAt, text_sum AS sum,
  record`;

export class PromptStore {
  /** The runs that prompts started. */
  readonly runs: RunStore;
  readonly #database: Database;
  /** By session. */
  readonly #queued = new PendingWrites();
  /** Ids that are being written. */
  readonly #adding = new Set<string>();
  /** Deleted ids whose deletion is not on disk yet. */
  readonly #forgetting = new Set<string>();
  readonly #put;
  readonly #delete;
  readonly #get;
  readonly #open;
  readonly #list;
  readonly #deleteOf;
  readonly #expire;
  readonly #limit;
  readonly #now: () => number;

  /** `now`: the time from which the age of an ended prompt is counted. */
  constructor(database: Database, now = steadyNow) {
    this.#database = database;
    this.#now = now;
    this.runs = new RunStore(database);
    this.#put = database.prepare(
      `INSERT INTO prompts
         (prompt_id, session_id, text, state, created_at, text_sum, record, record_sum, settled_at, number)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT ifnull(max(number), 0) + 1 FROM prompts))
       ON CONFLICT (prompt_id) DO UPDATE SET
         text = excluded.text, state = excluded.state, text_sum = excluded.text_sum, record = excluded.record,
         record_sum = excluded.record_sum, settled_at = excluded.settled_at`,
    );
    this.#delete = database.prepare("DELETE FROM prompts WHERE prompt_id = ?");
    this.#get = database.prepare(`SELECT ${columns} FROM prompts WHERE prompt_id = ?`);
    this.#open = database.prepare(
      `SELECT ${columns} FROM prompts WHERE session_id = ? AND (settled_at IS NULL OR state = 'lost')
       ORDER BY number`,
    );
    this.#list = database.prepare(
      `SELECT ${columns} FROM prompts WHERE session_id = ? AND state IN (SELECT value FROM json_each(?))
       ORDER BY number DESC LIMIT ?`,
    );
    this.#deleteOf = database.prepare("DELETE FROM prompts WHERE session_id = ?");
    this.#expire = database.prepare(
      `DELETE FROM prompts WHERE settled_at IS NOT NULL AND
         ((state = 'lost' AND settled_at < ?) OR (state <> 'lost' AND settled_at < ?))`,
    );
    this.#limit = database.prepare(
      `DELETE FROM prompts WHERE settled_at < (
         SELECT settled_at FROM prompts WHERE settled_at IS NOT NULL ORDER BY settled_at DESC LIMIT 1 OFFSET ?)`,
    );
  }

  /**
   * Resolves when a new prompt is on disk, together with the rest of its `group` (default: the prompt's id). Rejects
   * with `store_failed` or `conflict`; then nothing is stored.
   */
  async add(prompt: StoredPrompt, group = prompt.promptId): Promise<void> {
    const { promptId } = prompt;
    if (this.#adding.has(promptId) || this.get(promptId) !== undefined) {
      throw new WireError("conflict", `The id "${promptId}" was used before for another prompt.`, { promptId });
    }
    this.#adding.add(promptId);
    try {
      await this.#database.together(group, this.#put, ...this.#values(prompt));
    } finally {
      this.#adding.delete(promptId);
    }
  }

  /**
   * Stores a changed prompt. Once its outcome is known, only the beginning of its text is kept, unless it is lost.
   * `isAwaited`: an answer waits for it.
   */
  put(prompt: StoredPrompt, isAwaited = false): Promise<void> {
    if (isAwaited) this.#database.commitSoon();
    const written = this.#database.keep(`prompt ${prompt.promptId}`, this.#put, ...this.#values(prompt));
    return this.#queued.until(written, prompt.sessionId);
  }

  /** For a prompt that pi refused: its id may be used again. */
  async forget(promptId: string): Promise<void> {
    this.#forgetting.add(promptId);
    this.#database.commitSoon();
    try {
      await this.#database.keep(`prompt ${promptId}`, this.#delete, promptId);
    } finally {
      this.#forgetting.delete(promptId);
    }
  }

  get(promptId: string): StoredPrompt | undefined {
    const row = this.#forgetting.has(promptId) ? undefined : this.#get.get(promptId);
    return row === undefined ? undefined : promptOf(row);
  }

  /** A session's prompts that are lost or not over, in order of acceptance. Throws `store_failed`. */
  open(sessionId: string): readonly StoredPrompt[] {
    this.#queued.settle(this.#database, sessionId);
    return this.#open.all(sessionId).map(promptOf);
  }

  /** The newest first. Throws `store_failed`. */
  list(sessionId: string, states: readonly PromptState[], limit: number): readonly StoredPrompt[] {
    this.#queued.settle(this.#database, sessionId);
    return this.#list.all(sessionId, JSON.stringify(states), limit).map(promptOf);
  }

  deleteOf(sessionId: string): Promise<void> {
    const written = this.#database.clear(`prompts of ${sessionId}`, this.#deleteOf, sessionId);
    return this.#queued.until(written, sessionId);
  }

  /** Deletes lost and otherwise settled prompts that are older than the given times, in Unix milliseconds. */
  expire(lostBefore: number, settledBefore: number): Promise<void> {
    return this.#database.write(this.#expire, lostBefore, settledBefore);
  }

  /** Deletes the oldest settled or lost prompts beyond this number. */
  limit(maxSettled: number): Promise<void> {
    return this.#database.write(this.#limit, maxSettled - 1);
  }

  #values(prompt: StoredPrompt): (string | number | null)[] {
    const { promptId, sessionId, text, state, createdAt, updatedAt, place, ...facts } = prompt;
    const kept = state === "lost" || unsettled.has(state) ? text : text.slice(0, maxExcerptLength);
    const record = JSON.stringify({ ...facts, ...(unsettled.has(state) ? { place } : {}), updatedAt });
    return [
      promptId,
      sessionId,
      kept,
      state,
      createdAt,
      checksumOf(kept),
      record,
      checksumOf(record),
      isOver(prompt) ? this.#now() : null,
    ];
  }
}

function promptOf(row: Readonly<Record<string, unknown>>): StoredPrompt {
  const { sum, record, ...prompt } = row as unknown as PromptRow;
  if (!isSound(prompt.text, sum)) throw new Error("A prompt in the store is damaged.");
  // Older versions stored no record.
  const facts = record === null ? {} : (JSON.parse(record) as Partial<StoredPrompt>);
  return { length: prompt.text.length, hash: "", updatedAt: prompt.createdAt, ...facts, ...prompt };
}
