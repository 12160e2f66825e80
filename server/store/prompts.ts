import { WireError } from "../../protocol/errors.ts";
import type { Prompt, PromptState } from "../../protocol/prompt.ts";
import type { Database } from "./database.ts";
import { Queued } from "./queued.ts";
import { steadyNow } from "./retention-clock.ts";
import { RunStore } from "./runs.ts";
import { isSound, sumOf } from "./sums.ts";

/** A prompt as it is kept: the whole text, as long as it stands nowhere else. */
export interface StoredPrompt extends Prompt {
  /** Of all that makes it the same prompt: its text, images, and what it is to do in a run. */
  readonly hash: string;
}

/** How much of a text is kept, and told, when its fate is known. */
export const maxExcerptLength = 1_000;

const unsettled: ReadonlySet<PromptState> = new Set(["stored", "started", "queued"]);

/** Whether nothing will become of a prompt any more: not of its state, and not of its run. */
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
  /** The runs that they have started. */
  readonly runs: RunStore;
  readonly #database: Database;
  /** By session. */
  readonly #queued = new Queued();
  /** Ids that are on their way to the disk. */
  readonly #adding = new Set<string>();
  /** Ids that are free again, before the disk says so. */
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

  /** `now` is the time that the age of a prompt that is over is counted from. */
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
   * Resolves when a new prompt's text is on disk, with what else is of the `group`, by default the prompt's id. Rejects
   * with `store_failed`, or `conflict`: then nothing is stored.
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

  /** Notes what has become of it. Of a text whose fate is known only the beginning is kept, unless it is lost. */
  put(prompt: StoredPrompt): Promise<void> {
    const written = this.#database.keep(`prompt ${prompt.promptId}`, this.#put, ...this.#values(prompt));
    return this.#queued.until(written, prompt.sessionId);
  }

  /** For a prompt that pi has refused: its id may be used again. */
  async forget(promptId: string): Promise<void> {
    this.#forgetting.add(promptId);
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

  /** A session's prompts that are lost, or of which not all is known yet, in the order of their acceptance. Throws `store_failed`. */
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

  /** Forgets what was lost, and what was settled otherwise, before the given times in Unix milliseconds. */
  expire(lostBefore: number, settledBefore: number): Promise<void> {
    return this.#database.write(this.#expire, lostBefore, settledBefore);
  }

  /** Forgets the oldest of those that are settled or lost beyond so many. */
  limit(maxSettled: number): Promise<void> {
    return this.#database.write(this.#limit, maxSettled - 1);
  }

  #values(prompt: StoredPrompt): (string | number | null)[] {
    const { promptId, sessionId, text, state, createdAt, updatedAt, ...facts } = prompt;
    const kept = state === "lost" || unsettled.has(state) ? text : text.slice(0, maxExcerptLength);
    const record = JSON.stringify({ ...facts, updatedAt });
    return [
      promptId,
      sessionId,
      kept,
      state,
      createdAt,
      sumOf(kept),
      record,
      sumOf(record),
      isOver(prompt) ? this.#now() : null,
    ];
  }
}

function promptOf(row: Readonly<Record<string, unknown>>): StoredPrompt {
  const { sum, record, ...prompt } = row as unknown as PromptRow;
  if (!isSound(prompt.text, sum)) throw new Error("A prompt in the store is damaged.");
  // An older version has kept no record.
  const facts = record === null ? {} : (JSON.parse(record) as Partial<StoredPrompt>);
  return { length: prompt.text.length, hash: "", updatedAt: prompt.createdAt, ...facts, ...prompt };
}
