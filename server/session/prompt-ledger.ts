import type { LostPrompt } from "../../protocol/session.ts";
import { isRecordObject, type PiEvent } from "../pi/records.ts";
import { readEntries } from "../pi/session-file.ts";
import type { PromptStore, StoredPrompt } from "../store/prompts.ts";

interface OpenPrompt {
  readonly promptId: string;
  readonly text: string;
  readonly createdAt: number;
  disposition: Exclude<StoredPrompt["state"], "lost">;
}

const maxLost = 16;
const maxExcerptLength = 1_000;

/**
 * Knows which prompts pi has taken and not yet written into the transcript. pi keeps queued prompts in memory, and
 * loses even an accepted one when it is killed within milliseconds (measured); such a loss is reported, and the prompt
 * is never sent again by itself.
 */
export class PromptLedger {
  readonly #sessionId: string;
  readonly #store: PromptStore;
  #open: OpenPrompt[] = [];
  #lost: LostPrompt[] = [];

  constructor(sessionId: string, store: PromptStore) {
    this.#sessionId = sessionId;
    this.#store = store;
    for (const prompt of store.of(sessionId)) {
      if (prompt.state === "lost") this.#lost.push(lostPrompt(prompt));
      else this.#open.push({ ...prompt, disposition: prompt.state });
    }
    this.#lost = this.#lost.slice(-maxLost);
  }

  /** The newest lost prompts, the oldest of them first. */
  get lost(): readonly LostPrompt[] {
    return this.#lost;
  }

  /** Resolves when the text is on disk: only then may it be written to pi. */
  async store(promptId: string, text: string): Promise<void> {
    const createdAt = Date.now();
    await this.#store.add({ promptId, sessionId: this.#sessionId, text, createdAt });
    this.#open.push({ promptId, text, createdAt, disposition: "stored" });
  }

  /** pi took it: to start a run with it, or into its queue. */
  accepted(promptId: string, disposition: "started" | "queued"): void {
    const prompt = this.#open.find((open) => open.promptId === promptId);
    if (prompt === undefined) return;
    prompt.disposition = disposition;
    void this.#store.setState(promptId, disposition);
  }

  /** Its fate is known, and it is not lost. */
  forget(promptId: string): void {
    this.#open = this.#open.filter((open) => open.promptId !== promptId);
    void this.#store.forget(promptId);
  }

  /** A message of pi is complete, so its entry is in the session file. */
  messageEnded(event: PiEvent): void {
    if (this.#open.length === 0) return;
    const text = userText(event["message"]);
    const prompt = text === undefined ? undefined : matching(this.#open, text);
    if (prompt !== undefined) this.forget(prompt.promptId);
  }

  /** pi's queue was emptied of these texts: they were taken back, not lost. */
  cleared(texts: readonly string[]): void {
    for (const text of texts) {
      const prompt = this.#open.find((open) => open.disposition === "queued" && open.text === text);
      if (prompt !== undefined) this.forget(prompt.promptId);
    }
  }

  /** The run has ended by itself, so pi's queue is empty: what was expanded or rewritten has been written too. */
  runSettled(): void {
    for (const { promptId, disposition } of this.#open) if (disposition !== "stored") this.forget(promptId);
  }

  /** The child has ended: compares what is open with the session file, and says what is lost. */
  async childEnded(file: string): Promise<readonly LostPrompt[]> {
    if (this.#open.length === 0) return [];
    const open = this.#open;
    this.#open = [];
    const written = await userEntries(file).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return [];
      this.#open = [...open, ...this.#open];
      throw error;
    });
    const lost: LostPrompt[] = [];
    for (const prompt of open) {
      const index = written.findIndex(({ at, text }) => at >= prompt.createdAt && text === prompt.text);
      const rewritten = prompt.disposition === "started" ? written.findIndex(({ at }) => at >= prompt.createdAt) : -1;
      const found = index === -1 ? rewritten : index;
      if (found === -1) {
        lost.push(lostPrompt(prompt));
        void this.#store.setState(prompt.promptId, "lost");
      } else {
        written.splice(found, 1);
        void this.#store.forget(prompt.promptId);
      }
    }
    this.#lost = [...this.#lost, ...lost].slice(-maxLost);
    return lost;
  }
}

/** A prompt's own message: the same text, else (templates, skills and extensions rewrite) the one that a run began with. */
function matching(open: readonly OpenPrompt[], text: string): OpenPrompt | undefined {
  return open.find((prompt) => prompt.text === text) ?? open.find(({ disposition }) => disposition === "started");
}

function lostPrompt({ promptId, text, createdAt }: Pick<StoredPrompt, "promptId" | "text" | "createdAt">): LostPrompt {
  return { promptId, text: text.slice(0, maxExcerptLength), length: text.length, at: createdAt };
}

async function userEntries(file: string): Promise<{ readonly at: number; readonly text: string }[]> {
  const entries = await readEntries(file);
  return entries.flatMap((entry) => {
    const text = userText(entry["message"]);
    return text === undefined ? [] : [{ at: Date.parse(String(entry["timestamp"])), text }];
  });
}

function userText(message: unknown): string | undefined {
  if (!isRecordObject(message) || message["role"] !== "user") return undefined;
  const { content } = message;
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return undefined;
  return content
    .filter(isRecordObject)
    .filter(({ type }) => type === "text")
    .map(({ text }) => String(text))
    .join("");
}
