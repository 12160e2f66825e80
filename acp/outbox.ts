import { isRecord } from "../protocol/objects.ts";

/** Where messages go, one text each. */
export interface Sink {
  /** Returns false if the reader has not taken what was written: then nothing more is written until `drained`. */
  write(text: string): boolean;
  /** Resolves when the reader has taken what was written. */
  drained(): Promise<void>;
  /** So many characters are held for the reader, in addition to what was written. Default: the host does not count them. */
  held?(length: number): void;
}

interface Waiting {
  readonly sessionId: string;
  update: object;
  length: number;
}

/** Above it, sessions stop following their log until the reader has taken everything. */
const maxWaitingLength = 8 * 1024 * 1024;

/**
 * The messages to a client, in order. Updates wait for a slow reader: pieces of one text become one message. Requests and
 * answers go to the sink at once, which bounds them, with the updates before them.
 */
export class Outbox {
  readonly #sink: Sink;
  #waiting: Waiting[] = [];
  #waitingLength = 0;
  /** What sessions hold for the reader: see {@link hold}. */
  #heldLength = 0;
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
    for (const item of this.#waiting.splice(0)) this.#write(textOf(item));
    this.#waits(0);
    this.#write(text);
  }

  update(sessionId: string, update: object): void {
    if (!this.#isBlocked) {
      this.#write(textOf({ sessionId, update }));
      return;
    }
    const last = this.#waiting.at(-1);
    const joined = last?.sessionId === sessionId && join(last.update, update);
    if (joined) {
      last.length += joined.added;
      last.update = joined.update;
      this.#waits(this.#waitingLength + joined.added);
    } else if (!this.#isClosed) {
      const { length } = JSON.stringify(update);
      this.#waiting.push({ sessionId, update, length });
      this.#waits(this.#waitingLength + length);
    }
  }

  /** Counts what a session holds until the reader has taken it. The returned function ends that. */
  hold(value: object): () => void {
    const length = lengthOf(value);
    this.#heldLength += length;
    this.#waits(this.#waitingLength);
    return () => {
      this.#heldLength -= length;
      this.#waits(this.#waitingLength);
    };
  }

  /** The reader has gone: nothing more is kept. */
  close(): void {
    this.#isClosed = true;
    this.#waiting.length = 0;
    this.#waits(0);
    this.#emptied?.resolve();
  }

  #waits(length: number): void {
    this.#waitingLength = length;
    this.#sink.held?.(length + this.#heldLength);
  }

  #write(text: string): void {
    if (this.#isClosed || this.#sink.write(text) || this.#isBlocked) return;
    this.#isBlocked = true;
    this.#emptied ??= Promise.withResolvers();
    void this.#sink.drained().then(() => this.#goOn());
  }

  #goOn(): void {
    this.#isBlocked = false;
    const batch = this.#waiting;
    this.#waiting = [];
    for (const [index, item] of batch.entries()) {
      this.#waits(this.#waitingLength - item.length);
      this.#write(textOf(item));
      if (!this.#isBlocked) continue;
      this.#waiting = batch.slice(index + 1);
      return;
    }
    this.#emptied?.resolve();
    this.#emptied = undefined;
  }
}

function textOf({ sessionId, update }: Pick<Waiting, "sessionId" | "update">): string {
  return JSON.stringify({ jsonrpc: "2.0", method: "session/update", params: { sessionId, update } });
}

/** Two pieces of the same text as one. */
function join(former: object, next: object): { update: object; added: number } | undefined {
  const [one, two] = [pieceIn(former), pieceIn(next)];
  if (one === undefined || two === undefined) return undefined;
  if (one.kind !== two.kind || one.messageId !== two.messageId) return undefined;
  return { update: { ...former, content: { ...one.content, text: one.text + two.text } }, added: two.text.length };
}

/** A piece of the model's text. */
interface Piece {
  readonly kind: unknown;
  readonly messageId: unknown;
  readonly content: object;
  readonly text: string;
}

function pieceIn(update: object): Piece | undefined {
  const { sessionUpdate: kind, messageId, content } = update as Readonly<Record<string, unknown>>;
  if (kind !== "agent_message_chunk" && kind !== "agent_thought_chunk") return undefined;
  if (!isRecord(content) || content["type"] !== "text" || typeof content["text"] !== "string") return undefined;
  return { kind, messageId, content, text: content["text"] };
}

/** The characters of a value's strings, and a few for each of its parts: about the length of its JSON. */
function lengthOf(value: object): number {
  let length = 0;
  const parts: unknown[] = [value];
  for (let part = parts.pop(); part !== undefined; part = parts.pop()) {
    length += typeof part === "string" ? part.length : 8;
    if (typeof part === "object" && part !== null) for (const each of Object.values(part)) parts.push(each ?? null);
  }
  return length;
}
