import type { SessionUpdate } from "@agentclientprotocol/sdk";

/** Where messages go, one text each. */
export interface Sink {
  /** Returns false if the reader has not taken what was written: then nothing more is written until `drained`. */
  write(text: string): boolean;
  /** Resolves when the reader has taken what was written. */
  drained(): Promise<void>;
}

type Waiting = { readonly text: string } | { readonly sessionId: string; update: SessionUpdate; length: number };

/** Above it, sessions stop following their log until the reader has taken everything. */
const maxWaitingLength = 8 * 1024 * 1024;

/** The messages to a client, in order. Pieces of one text that wait for a slow reader become one message. */
export class Outbox {
  readonly #sink: Sink;
  readonly #waiting: Waiting[] = [];
  #waitingLength = 0;
  #isBlocked = false;
  #isClosed = false;
  /** While something waits. */
  #emptied: PromiseWithResolvers<void> | undefined;

  constructor(sink: Sink) {
    this.#sink = sink;
  }

  /** Whether too much waits for the reader. */
  get isFull(): boolean {
    return this.#waitingLength > maxWaitingLength;
  }

  /** Resolves when nothing waits any more, or the reader has gone. */
  get emptied(): Promise<void> {
    return this.#emptied?.promise ?? Promise.resolve();
  }

  send(message: object): void {
    const text = JSON.stringify(message);
    if (this.#isBlocked) this.#keep({ text }, text.length);
    else this.#write(text);
  }

  update(sessionId: string, update: SessionUpdate): void {
    if (!this.#isBlocked) {
      this.#write(textOf(sessionId, update));
      return;
    }
    const last = this.#waiting.at(-1);
    const joined = last !== undefined && "update" in last && last.sessionId === sessionId && join(last.update, update);
    if (joined) {
      last.length += joined.added;
      last.update = joined.update;
      this.#waitingLength += joined.added;
    } else {
      const { length } = JSON.stringify(update);
      this.#keep({ sessionId, update, length }, length);
    }
  }

  /** The reader has gone: nothing more is kept. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.length = 0;
    this.#waitingLength = 0;
    this.#emptied?.resolve();
  }

  #keep(item: Waiting, length: number): void {
    if (this.#isClosed) return;
    this.#waiting.push(item);
    this.#waitingLength += length;
  }

  #write(text: string): void {
    if (this.#isClosed || this.#sink.write(text)) return;
    this.#isBlocked = true;
    this.#emptied ??= Promise.withResolvers();
    void this.#sink.drained().then(() => this.#goOn());
  }

  #goOn(): void {
    this.#isBlocked = false;
    const batch = this.#waiting.splice(0);
    for (const [index, item] of batch.entries()) {
      const text = "text" in item ? item.text : textOf(item.sessionId, item.update);
      this.#waitingLength -= "text" in item ? item.text.length : item.length;
      this.#write(text);
      if (!this.#isBlocked) continue;
      this.#waiting.unshift(...batch.slice(index + 1));
      return;
    }
    this.#emptied?.resolve();
    this.#emptied = undefined;
  }
}

function textOf(sessionId: string, update: SessionUpdate): string {
  return JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } });
}

/** Two pieces of the same text as one. */
function join(former: SessionUpdate, next: SessionUpdate): { update: SessionUpdate; added: number } | undefined {
  if (former.sessionUpdate !== next.sessionUpdate) return undefined;
  if (former.sessionUpdate !== "agent_message_chunk" && former.sessionUpdate !== "agent_thought_chunk")
    return undefined;
  const { content, messageId } = next as typeof former;
  if (former.messageId !== messageId || former.content.type !== "text" || content.type !== "text") return undefined;
  const { text } = content;
  return {
    update: { ...former, content: { ...former.content, text: former.content.text + text } },
    added: text.length,
  };
}
