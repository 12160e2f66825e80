import { randomUUID } from "node:crypto";
import { WireError } from "../protocol/errors.ts";
import type { Params } from "../protocol/methods.ts";
import { isRecord } from "../protocol/objects.ts";
import type { Prompt, PromptResult } from "../protocol/prompt.ts";
import { AcpError } from "./acp-error.ts";
import { type Builtin, type BuiltinSubject, builtinIn, commandsOf } from "./builtins.ts";
import { promptContent } from "./prompt-content.ts";
import type { Params as Given } from "./rpc-peer.ts";
import { noUsage, type RunUsage, withAnswer } from "./updates/usage.ts";

export interface PromptsOptions extends BuiltinSubject {
  /** Resolves when everything is out that the session has said until now. */
  readonly caughtUp: () => Promise<void>;
  /** Tells the user the words of a command of ours. */
  readonly say: (words: string) => void;
  /** The client has left the session. */
  readonly left: AbortSignal;
}

/** A prompt that the client waits for. */
interface Waiting {
  isCancelled: boolean;
}

const cancelled = { stopReason: "cancelled" };

/** How long one wait for a run takes before it is repeated. */
const waitMs = 60_000;

/** The words of providers that refuse a key. */
const refusedKey = /\b(?:401|403)\b|unauthori[sz]ed|invalid (?:x-)?api[ -]key|authentication/i;

/** A client's prompts to one session, and their answers. */
export class Prompts {
  readonly #options: PromptsOptions;
  /** Prompts of this client that pi has not taken in, with their texts. */
  readonly #own = new Map<string, string>();
  /** The prompt that began the run. */
  #started: string | undefined;
  readonly #waiting = new Set<Waiting>();
  /** The runs that this client's prompts began, and that have not ended. */
  readonly #runs = new Set<string>();
  #lastCancel: Promise<void> = Promise.resolve();
  /** Waits for the last one. */
  #nextCancel: Promise<void> | undefined;
  /** In the newest run. */
  #spent = noUsage;

  constructor(options: PromptsOptions) {
    this.#options = options;
  }

  /** Sends a prompt. Resolves with its answer, when its run has ended and everything of it is out. */
  async prompt({ prompt, _meta }: Given, signal: AbortSignal): Promise<object> {
    const { port, sessionId, left, caughtUp } = this.#options;
    const { text, images } = promptContent(prompt as Parameters<typeof promptContent>[0]);
    const promptId = randomUUID();
    const waiting: Waiting = { isCancelled: false };
    this.#waiting.add(waiting);
    // The run goes on if the client has gone.
    const stop = (): void => void (left.aborted || this.cancel());
    signal.addEventListener("abort", stop, { once: true });
    try {
      // An abort that was asked for before must not end this prompt's run.
      await (this.#nextCancel ?? this.#lastCancel);
      const builtin = await this.#builtinIn(text);
      if (waiting.isCancelled) return cancelled;
      if (builtin !== undefined) return await this.#perform(builtin);
      this.#own.set(promptId, text);
      const given = isRecord(_meta) && isRecord(_meta["pi-rpcd"]) ? _meta["pi-rpcd"]["ifRunning"] : undefined;
      const ifRunning: Params<"session/prompt">["ifRunning"] =
        given === "followUp" || given === "refuse" ? given : "steer";
      const params = { sessionId, promptId, text, ifRunning, ...(images.length === 0 ? {} : { images: [...images] }) };
      const taken = await port.call("session/prompt", params);
      if (taken.disposition === "started" && taken.runId !== undefined) this.#runs.add(taken.runId);
      // The cancellation may have come before the daemon had the prompt.
      if (waiting.isCancelled) await this.#end(promptId, taken.runId);
      const result = taken.disposition === "handled" ? taken : await this.#settled(promptId);
      await caughtUp();
      return answerTo(waiting.isCancelled ? { ...result, outcome: "aborted" } : result, this.#spent);
    } catch (error) {
      if (!left.aborted && !waiting.isCancelled) throw error;
      return cancelled;
    } finally {
      this.#own.delete(promptId);
      this.#waiting.delete(waiting);
      signal.removeEventListener("abort", stop);
    }
  }

  /** Cancels the run's questions, then the run, whoever began it. Calls that come during a call share the next one. */
  cancel(): Promise<void> {
    for (const prompt of this.#waiting) prompt.isCancelled = true;
    this.#nextCancel ??= this.#lastCancel.then(() => {
      this.#nextCancel = undefined;
      this.#lastCancel = this.#cancelNow();
      return this.#lastCancel;
    });
    return this.#nextCancel;
  }

  /** Ends the run if nobody else follows the session. Otherwise it ends only the runs that this client began. */
  async close(): Promise<void> {
    const { port, sessionId } = this.#options;
    try {
      await port.call("session/abort", { sessionId, ifAlone: true });
    } catch (error) {
      if (!(error instanceof WireError) || error.kind !== "session_busy") throw error;
      for (const expectedRunId of this.#runs)
        await port.call("session/abort", { sessionId, expectedRunId }).catch(() => {});
    }
  }

  runStarted(): void {
    this.#spent = noUsage;
  }

  runEnded(runId: string): void {
    this.#runs.delete(runId);
  }

  /** An answer of the model has this usage, as pi says. */
  answered(usage: unknown): void {
    this.#spent = withAnswer(this.#spent, usage);
  }

  started(promptId: string): void {
    this.#started = promptId;
  }

  /** pi has taken in a prompt. Returns whether it is one of this client's. */
  inserted({ promptId }: Pick<Prompt, "promptId">): boolean {
    return this.#own.delete(promptId);
  }

  /** Whether a user's message is one of this client's prompts that were not {@link inserted} yet. */
  insertedAs(text: string): boolean {
    for (const [promptId, own] of this.#own) if (own === text) return this.#own.delete(promptId);
    // Templates, skills and extensions rewrite texts.
    return this.#started !== undefined && this.#own.delete(this.#started);
  }

  /** The abort cancels the questions first. */
  async #cancelNow(): Promise<void> {
    const { port, sessionId } = this.#options;
    // In this order, but at once: the end of a prompt can wait for the answer to its question.
    const cancels = Array.from(this.#own.keys(), (promptId) => port.call("prompt/cancel", { promptId }));
    await Promise.allSettled([...cancels, port.call("session/abort", { sessionId })]);
  }

  /** Ends one prompt, and the run that takes it in. */
  async #end(promptId: string, runId: string | undefined): Promise<void> {
    const { port, sessionId } = this.#options;
    await port.call("prompt/cancel", { promptId }).catch(() => {});
    if (runId !== undefined) await port.call("session/abort", { sessionId, expectedRunId: runId }).catch(() => {});
  }

  async #settled(promptId: string): Promise<PromptResult> {
    const { port, left } = this.#options;
    for (;;) {
      try {
        return await port.call("prompt/wait", { promptId, timeoutMs: waitMs }, left);
      } catch (error) {
        if (!(error instanceof WireError && error.kind === "deadline_exceeded")) throw error;
      }
    }
  }

  /** pi's own commands come first. */
  async #builtinIn(text: string): Promise<Builtin | undefined> {
    const builtin = builtinIn(text);
    if (builtin === undefined) return undefined;
    // A session without a pi may not know its commands.
    const commands = await commandsOf(this.#options.port, this.#options.sessionId).catch(() => []);
    return commands.some(({ name }) => name === builtin.name) ? undefined : builtin;
  }

  async #perform(builtin: Builtin): Promise<object> {
    const words = await builtin.perform(this.#options);
    if (words !== undefined) this.#options.say(words);
    await this.#options.caughtUp();
    return { stopReason: "end_turn" };
  }
}

/** The answer to a prompt whose run has ended. Throws {@link AcpError} for a run that failed. */
function answerTo(result: PromptResult, spent: RunUsage): object {
  const { promptId, runId, state, outcome, stopReason, error, disposition } = result;
  const answer = (reason: string): object => ({
    stopReason: reason,
    _meta: { "pi-rpcd": { promptId, ...(runId === undefined ? {} : { runId, ...spent }) } },
  });
  if (outcome === "aborted" || state === "withdrawn") return answer("cancelled");
  if (disposition === "handled") return answer("end_turn");
  if (outcome === "failed" || stopReason === "error") {
    const words = error ?? "The model's provider failed.";
    throw new AcpError(refusedKey.test(words) ? "authRequired" : "internalError", words, { promptId, runId });
  }
  if (outcome !== "settled")
    throw new AcpError("internalError", "pi ended in the middle of the run.", { promptId, runId, state });
  return answer(stopReason === "length" ? "max_tokens" : "end_turn");
}
