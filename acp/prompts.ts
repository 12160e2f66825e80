import { randomUUID } from "node:crypto";
import { WireError } from "../protocol/errors.ts";
import type { Params } from "../protocol/methods.ts";
import { isRecord } from "../protocol/objects.ts";
import type { PromptResult } from "../protocol/prompt.ts";
import { type Builtin, type BuiltinSubject, builtinIn, commandsOf } from "./builtins.ts";
import { type PromptContent, promptContent } from "./prompt-content.ts";
import type { Params as Given } from "./rpc-peer.ts";

export interface PromptsOptions extends BuiltinSubject {
  readonly answers: PromptAnswers;
  /** The client has left the session. Its reason is the error of what waits. */
  readonly left: AbortSignal;
}

/** A prompt that the client waits for. */
export interface SentPrompt {
  readonly promptId: string;
  readonly content: PromptContent;
  isCancelled: boolean;
  /** Whether the daemon may have it in pi's queue. */
  isQueued: boolean;
}

/** When and with what a version of the protocol answers prompts. Each may reject with `AcpError`. */
export interface PromptAnswers {
  /** The answer to a prompt that was cancelled. */
  cancelled(): Promise<object>;
  /** The client cancels the request of this prompt. Absent: that cancels the session's work. */
  unwanted?(prompt: SentPrompt): void;
  /** Whether the client is told of a prompt as a command that pi performs. Absent: of none. */
  isCommand?(text: string): Promise<boolean>;
  /** Performs a command, which resolves with words for the user. */
  command(prompt: SentPrompt, perform: () => Promise<string | undefined>): Promise<object>;
  /** Sends a prompt that is no command. */
  message(prompt: SentPrompt, send: () => Promise<PromptResult>): Promise<object>;
}

/** A client's prompts to one session, and their answers. */
export class Prompts {
  readonly #options: PromptsOptions;
  /** By the ids of the prompts. */
  readonly #waiting = new Map<string, SentPrompt>();
  /** The runs that this client's prompts began, and that have not ended. */
  readonly #runs = new Set<string>();
  #lastEnded: string | undefined;
  #lastCancel: Promise<void> = Promise.resolve();
  /** Waits for the last one. */
  #nextCancel: Promise<void> | undefined;

  constructor(options: PromptsOptions) {
    this.#options = options;
  }

  /** Sends a prompt. Resolves with its answer. */
  async prompt({ prompt, _meta }: Given, signal: AbortSignal): Promise<object> {
    const { left, answers } = this.#options;
    const content = promptContent(prompt as Parameters<typeof promptContent>[0]);
    const sent: SentPrompt = { promptId: randomUUID(), content, isCancelled: false, isQueued: false };
    this.#waiting.set(sent.promptId, sent);
    // The run goes on if the client has gone.
    const stop = (): void => {
      if (left.aborted) return;
      if (answers.unwanted === undefined) void this.cancel();
      else answers.unwanted(sent);
    };
    signal.addEventListener("abort", stop, { once: true });
    const release = (): void => {
      this.#waiting.delete(sent.promptId);
      signal.removeEventListener("abort", stop);
    };
    let isPerformed = false;
    try {
      // An abort that was asked for before must not end this prompt's run.
      await (this.#nextCancel ?? this.#lastCancel);
      const perform = await this.#commandIn(sent, _meta);
      const isUnwanted = signal.aborted && !left.aborted;
      if (sent.isCancelled || isUnwanted) return await answers.cancelled();
      if (perform === undefined) return await answers.message(sent, () => this.#send(sent, _meta));
      isPerformed = true;
      // It can be answered before it is performed.
      return await answers.command(sent, () => perform().finally(release));
    } catch (error) {
      if (!sent.isCancelled) throw error;
      return await answers.cancelled();
    } finally {
      if (!isPerformed) release();
    }
  }

  /** What performs a prompt that is a command. */
  async #commandIn(sent: SentPrompt, meta: unknown): Promise<(() => Promise<string | undefined>) | undefined> {
    const { text } = sent.content;
    const builtin = await this.#builtinIn(text);
    if (builtin !== undefined) return () => builtin.perform(this.#options);
    if ((await this.#options.answers.isCommand?.(text)) !== true) return undefined;
    return async () => {
      await this.#send(sent, meta);
      return undefined;
    };
  }

  async #send(sent: SentPrompt, meta: unknown): Promise<PromptResult> {
    const { port, sessionId } = this.#options;
    const { promptId, content } = sent;
    const { text, images } = content;
    sent.isQueued = true;
    const given = isRecord(meta) && isRecord(meta["pi-rpcd"]) ? meta["pi-rpcd"]["ifRunning"] : undefined;
    const ifRunning: Params<"session/prompt">["ifRunning"] =
      given === "followUp" || given === "refuse" ? given : "steer";
    const params = { sessionId, promptId, text, ifRunning, ...(images.length === 0 ? {} : { images: [...images] }) };
    const taken = await port.call("session/prompt", params);
    const begun = taken.disposition === "started" ? taken.runId : undefined;
    if (begun !== undefined && begun !== this.#lastEnded) this.#runs.add(begun);
    // The cancellation may have come before the daemon had the prompt.
    if (sent.isCancelled) await this.#end(promptId, begun);
    return taken;
  }

  /** Cancels the run and its questions, whoever began it. Calls that come during a call share the next one. */
  cancel(): Promise<void> {
    for (const prompt of this.#waiting.values()) prompt.isCancelled = true;
    this.#nextCancel ??= this.#lastCancel.then(() => {
      this.#nextCancel = undefined;
      this.#lastCancel = this.#cancelNow();
      return this.#lastCancel;
    });
    return this.#nextCancel;
  }

  /**
   * Ends what this client has begun: its prompts, and the run if no other client follows the session. Otherwise it ends only
   * the runs that its prompts began.
   */
  async close(): Promise<void> {
    const { port, sessionId } = this.#options;
    for (const prompt of this.#waiting.values()) prompt.isCancelled = true;
    const withdrawals = this.#withdrawals();
    const abort = port.call("session/abort", { sessionId, ifAlone: true });
    await Promise.allSettled([...withdrawals, abort]);
    try {
      await abort;
    } catch (error) {
      // A client that may not abort runs has begun none.
      if (!(error instanceof WireError) || !["session_busy", "forbidden"].includes(error.kind)) throw error;
      await Promise.all(Array.from(this.#runs, (runId) => this.#endRun(runId)));
    }
  }

  /** Whether it is a prompt of this client that waits. */
  isOwn(promptId: string): boolean {
    return this.#waiting.has(promptId);
  }

  /** pi has taken in a prompt, of this client or another. */
  takenIn(promptId: string): void {
    const waiting = this.#waiting.get(promptId);
    if (waiting !== undefined) waiting.isQueued = false;
  }

  /** The abort cancels the questions too. */
  async #cancelNow(): Promise<void> {
    const { port, sessionId } = this.#options;
    // In this order, but at once: the end of a prompt can wait for the answer to its question.
    await Promise.allSettled([...this.#withdrawals(), port.call("session/abort", { sessionId })]);
  }

  /** Takes back the prompts that pi has not taken in. */
  #withdrawals(): Promise<unknown>[] {
    const queued = [...this.#waiting].filter(([, { isQueued }]) => isQueued);
    return queued.map(([promptId]) => this.#options.port.call("prompt/cancel", { promptId }));
  }

  runEnded(runId: string): void {
    this.#lastEnded = runId;
    this.#runs.delete(runId);
  }

  /** Ends one prompt, and the run that it began. */
  async #end(promptId: string, runId: string | undefined): Promise<void> {
    await this.#options.port.call("prompt/cancel", { promptId }).catch(() => {});
    if (runId !== undefined) await this.#endRun(runId);
  }

  async #endRun(expectedRunId: string): Promise<void> {
    const { port, sessionId } = this.#options;
    await port.call("session/abort", { sessionId, expectedRunId }).catch(() => {});
  }

  /** pi's own commands come first. */
  async #builtinIn(text: string): Promise<Builtin | undefined> {
    const builtin = builtinIn(text);
    if (builtin === undefined) return undefined;
    // A session without a pi may not know its commands.
    const commands = await commandsOf(this.#options.port, this.#options.sessionId).catch(() => []);
    return commands.some(({ name }) => name === builtin.name) ? undefined : builtin;
  }
}
