import type { PromptResult } from "../../protocol/prompt.ts";
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

/**
 * Version 2 answers a prompt when its message is in the conversation, with the message's id. Commands are not part of pi's
 * conversation: their messages are made here, for this client.
 */
export class AnswersAtInsertion implements PromptAnswers {
  readonly #options: AnswersAtInsertionOptions;
  /** Prompts that are not in the conversation yet. */
  readonly #waiting = new Map<string, PromiseWithResolvers<string>>();
  /** Prompts whose requests the client has cancelled. */
  readonly #unwanted = new Set<string>();

  constructor(options: AnswersAtInsertionOptions) {
    this.#options = options;
  }

  cancelled(): Promise<object> {
    return Promise.reject(cancellation());
  }

  /** A prompt that is in the conversation stays there. */
  unwanted({ promptId }: SentPrompt): void {
    if (!this.#waiting.has(promptId)) return;
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
    this.#waiting.set(promptId, inserted);
    inserted.promise.catch(() => {});
    try {
      const { disposition, runId } = await send();
      // The cancellation may have come before the daemon had the prompt.
      if (this.#unwanted.has(promptId)) this.#withdraw(promptId);
      if (disposition === "handled") inserted.resolve(this.#handled(prompt));
      else this.#waitForEnd(prompt, known.signal).then(inserted.resolve, inserted.reject);
      const messageId = await inserted.promise;
      return { messageId, _meta: { "pi-rpcd": { promptId, ...(runId === undefined ? {} : { runId }) } } };
    } finally {
      this.#waiting.delete(promptId);
      this.#unwanted.delete(promptId);
      known.abort();
    }
  }

  /** The message of a prompt, of this client or another, is in the conversation. */
  inserted(promptId: string, messageId: string): void {
    this.#waiting.get(promptId)?.resolve(messageId);
  }

  /** Resolves with the message's id, if the end of the prompt's run comes before the message: then it is known no better. */
  async #waitForEnd(prompt: SentPrompt, known: AbortSignal): Promise<string> {
    const { port, left, caughtUp } = this.#options.parts;
    const { promptId } = prompt;
    const { state } = await settled(port, promptId, AbortSignal.any([left, known]));
    await caughtUp();
    if (state === "inserted") return this.#options.lastMessage();
    if (state === "handled") return this.#handled(prompt);
    if (state === "withdrawn") throw cancellation();
    throw new AcpError("internalError", "pi ended before it had the prompt.", { promptId, state });
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
