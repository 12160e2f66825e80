import type { Prompt, PromptResult, PromptState } from "../../protocol/prompt.ts";
import { AcpError } from "../acp-error.ts";
import { acpErrorOf } from "../known-errors.ts";
import type { PromptContent } from "../prompt-content.ts";
import type { PromptAnswers, SentPrompt } from "../prompts.ts";
import { settled } from "../run-end.ts";
import type { SessionParts } from "../session-version.ts";
import type { Foreground, Stop } from "./foreground.ts";

export interface AnswersAtInsertionOptions {
  readonly parts: SessionParts;
  readonly foreground: Foreground;
  /** The id of the last user's message that the client was told. */
  readonly lastMessage: () => string;
}

/** A prompt that is not in the conversation yet. */
interface Waiting {
  readonly prompt: SentPrompt;
  readonly inserted: PromiseWithResolvers<string>;
}

/** A user's message that the client was told, and that belongs to no prompt yet. */
interface Told {
  readonly messageId: string;
  readonly text: string;
}

/** More of them are not prompts: extensions have sent them. */
const maxTold = 32;

/**
 * Version 2 answers a prompt when its message is in the conversation, with the message's id. Commands are not part of pi's
 * conversation: their messages are made here, for this client.
 */
export class AnswersAtInsertion implements PromptAnswers {
  readonly #options: AnswersAtInsertionOptions;
  readonly #waiting = new Map<string, Waiting>();
  /** Prompts whose requests the client has cancelled. */
  readonly #unwanted = new Set<string>();
  #told: Told[] = [];

  constructor(options: AnswersAtInsertionOptions) {
    this.#options = options;
  }

  cancelled(): Promise<object> {
    return Promise.reject(cancellation());
  }

  /** A prompt that is in the conversation stays there. */
  unwanted({ promptId }: SentPrompt): void {
    this.#unwanted.add(promptId);
    this.#withdraw(promptId);
  }

  /** Extensions' commands are performed without a message to the model. */
  async isCommand(text: string): Promise<boolean> {
    const [, name] = /^\/(\S+)/.exec(text) ?? [];
    if (name === undefined) return false;
    const { port, sessionId } = this.#options.parts;
    const { commands } = await port.call("session/getCommands", { sessionId }).catch(() => ({ commands: [] }));
    return commands.some((command) => command.name === name && command.source === "extension");
  }

  command(prompt: SentPrompt, perform: () => Promise<string | undefined>): Promise<object> {
    const messageId = this.#begin(prompt.content, prompt.promptId);
    void this.#perform(prompt, perform);
    return Promise.resolve({ messageId });
  }

  async message(prompt: SentPrompt, send: () => Promise<PromptResult>): Promise<object> {
    const { promptId } = prompt;
    const inserted = Promise.withResolvers<string>();
    const known = new AbortController();
    // pi can take it in before the daemon answers.
    this.#waiting.set(promptId, { prompt, inserted });
    inserted.promise.catch(() => {});
    try {
      const { disposition, runId } = await send();
      // The cancellation may have come before the daemon had the prompt.
      if (this.#unwanted.has(promptId)) this.#withdraw(promptId);
      if (disposition === "handled") this.#end(promptId, "handled");
      else this.#waitForEnd(prompt, known.signal).catch(inserted.reject);
      const messageId = await inserted.promise;
      return { messageId, _meta: { "pi-rpcd": { promptId, ...(runId === undefined ? {} : { runId }) } } };
    } finally {
      this.#waiting.delete(promptId);
      this.#unwanted.delete(promptId);
      known.abort();
    }
  }

  /** The client was told a user's message. */
  said(message: Told): void {
    this.#told = [...this.#told, message].slice(-maxTold);
  }

  /** The client was told the history. Messages in it belong to prompts before, except the last ones. */
  attached(): void {
    this.#told = this.#told.slice(this.#told.length - this.#waiting.size);
  }

  /** A prompt of any client has another state. */
  updated({ promptId, state, text, length }: Prompt): void {
    if (state === "inserted") this.#end(promptId, state, this.#claim(text, length));
    else if (state === "handled" || state === "withdrawn" || state === "lost") this.#end(promptId, state);
  }

  #end(promptId: string, state: PromptState | undefined, messageId = ""): void {
    const waiting = this.#waiting.get(promptId);
    if (waiting === undefined) return;
    this.#waiting.delete(promptId);
    const { prompt, inserted } = waiting;
    if (state === "inserted") inserted.resolve(messageId);
    else if (state === "handled") inserted.resolve(this.#handled(prompt));
    else if (state === "withdrawn") inserted.reject(cancellation());
    else inserted.reject(new AcpError("internalError", "pi ended before it had the prompt.", { promptId, state }));
  }

  /** The end of a prompt's run tells what notifications have not told. */
  async #waitForEnd({ promptId, content }: SentPrompt, known: AbortSignal): Promise<void> {
    const { port, left, caughtUp } = this.#options.parts;
    const { state } = await settled(port, promptId, AbortSignal.any([left, known]));
    await caughtUp();
    if (!this.#waiting.has(promptId)) return;
    const { text } = content;
    this.#end(promptId, state, state === "inserted" ? this.#claim(text, text.length) : "");
  }

  /** The message of a prompt is the first one with its text, else the last one: templates and extensions rewrite texts. */
  #claim(text: string, length: number): string {
    const same = this.#told.findIndex((told) => told.text.length === length && told.text.startsWith(text));
    const [told] = this.#told.splice(same, 1);
    return told?.messageId ?? this.#options.lastMessage();
  }

  #withdraw(promptId: string): void {
    this.#options.parts.port.call("prompt/cancel", { promptId }).catch(() => {});
  }

  #handled(prompt: SentPrompt): string {
    const messageId = this.#begin(prompt.content, prompt.promptId);
    this.#options.foreground.commandEnded({ stopReason: "end_turn" });
    return messageId;
  }

  #begin({ text, images }: PromptContent, promptId: string): string {
    const { parts, foreground, lastMessage } = this.#options;
    foreground.commandBegan();
    const messageId = `command-${promptId}`;
    const blocks = [...(text === "" ? [] : [{ type: "text" as const, text }]), ...images];
    for (const content of blocks) parts.update({ sessionUpdate: "user_message_chunk", messageId, content });
    return lastMessage();
  }

  async #perform(prompt: SentPrompt, perform: () => Promise<string | undefined>): Promise<void> {
    const { parts, foreground } = this.#options;
    let stop: Stop;
    try {
      const words = await perform();
      if (words !== undefined) parts.say(words);
      stop = { stopReason: prompt.isCancelled ? "cancelled" : "end_turn" };
    } catch (error) {
      stop = prompt.isCancelled ? { stopReason: "cancelled" } : failed(error);
    }
    await parts.caughtUp().catch(() => {});
    foreground.commandEnded(stop);
  }
}

/** Work that failed. */
export function failed(error: unknown): Stop {
  const { code, message, data } = acpErrorOf(error);
  return { stopReason: "error", error: { code, message, ...(data === undefined ? {} : { data }) } };
}

function cancellation(): AcpError {
  return new AcpError("requestCancelled", "The prompt was cancelled.");
}
