import type { Database } from "./database.ts";
import { isSound, sumOf } from "./sums.ts";

/**
 * `stored`: not yet taken by pi. `started`, `queued`: pi said that it has it, for a new run or in its queue. `lost`: pi has
 * ended, and it is not in the transcript.
 */
export type PromptState = "stored" | "started" | "queued" | "lost";

export interface StoredPrompt {
  readonly promptId: string;
  readonly sessionId: string;
  readonly text: string;
  readonly state: PromptState;
  readonly createdAt: number;
}

export class PromptStore {
  readonly #database: Database;
  readonly #insert;
  readonly #update;
  readonly #delete;
  readonly #select;
  readonly #deleteOf;
  readonly #expire;

  constructor(database: Database) {
    this.#database = database;
    this.#insert = database.prepare(
      "INSERT INTO prompts (prompt_id, session_id, text, state, created_at, text_sum) VALUES (?, ?, ?, 'stored', ?, ?)",
    );
    this.#update = database.prepare("UPDATE prompts SET state = ? WHERE prompt_id = ?");
    this.#delete = database.prepare("DELETE FROM prompts WHERE prompt_id = ?");
    this.#select = database.prepare(
      `SELECT prompt_id AS promptId, session_id AS sessionId, text, state, created_at AS createdAt, text_sum AS sum
       FROM prompts WHERE session_id = ? ORDER BY created_at, prompt_id`,
    );
    this.#deleteOf = database.prepare("DELETE FROM prompts WHERE session_id = ?");
    this.#expire = database.prepare("DELETE FROM prompts WHERE state = 'lost' AND created_at < ?");
  }

  /** Resolves when the text is on disk. Rejects with `store_failed`: then nothing of it is stored. */
  add({ promptId, sessionId, text, createdAt }: Omit<StoredPrompt, "state">): Promise<void> {
    return this.#database.write(this.#insert, promptId, sessionId, text, createdAt, sumOf(text));
  }

  setState(promptId: string, state: PromptState): Promise<void> {
    return this.#database.keep(`prompt ${promptId}`, this.#update, state, promptId);
  }

  /** For a prompt whose fate is known: it stands in the transcript, was handled, or was refused. */
  forget(promptId: string): Promise<void> {
    return this.#database.keep(`prompt ${promptId}`, this.#delete, promptId);
  }

  /** A session's prompts that are lost, or of which nobody knows yet whether they stand in the transcript; oldest first. */
  of(sessionId: string): readonly StoredPrompt[] {
    return this.#select.all(sessionId).map(({ sum, ...prompt }) => {
      if (!isSound(prompt["text"], sum)) throw new Error("A prompt in the store is damaged.");
      return prompt as unknown as StoredPrompt;
    });
  }

  deleteOf(sessionId: string): Promise<void> {
    return this.#database.keep(`prompts of ${sessionId}`, this.#deleteOf, sessionId);
  }

  /** Forgets what was lost before the given time, in Unix milliseconds. */
  expire(before: number): Promise<void> {
    return this.#database.write(this.#expire, before);
  }
}
