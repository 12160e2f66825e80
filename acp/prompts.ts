import { randomUUID } from "node:crypto";
import { WireError } from "../protocol/errors.ts";
import type { Params } from "../protocol/methods.ts";
import { isRecord } from "../protocol/objects.ts";
import type { PromptResult } from "../protocol/prompt.ts";
import { AcpError } from "./acp-error.ts";
import { type Builtin, type BuiltinSubject, builtinIn, commandsOf } from "./builtins.ts";
import { promptContent } from "./prompt-content.ts";
import type { Params as Given } from "./rpc-peer.ts";
import type { RunUsage } from "./updates/usage.ts";

export interface PromptsOptions extends BuiltinSubject {
  /** Resolves when everything is out that the session has said until now. */
  readonly caughtUp: () => Promise<void>;
  /** Tells the user the words of a command of ours. */
  readonly say: (words: string) => void;
  readonly usageOf: (runId: string) => RunUsage;
  /** The client has left the session. Its reason is the error of what waits. */
  readonly left: AbortSignal;
}

/** A prompt that the client waits for. */
interface Waiting {
  isCancelled: boolean;
  /** Whether the daemon may have it in pi's queue. */
  isQueued: boolean;
  /** The run that it began. */
  runId?: string;
}

const cancelled = { stopReason: "cancelled" };

/** How long one wait for a run takes before it is repeated. */
const waitMs = 60_000;

/** The words of providers that refuse a key. */
const refusedKey = /\b(?:401|403)\b|unauthori[sz]ed|invalid (?:x-)?api[ -]key|authentication/i;

/** A client's prompts to one session, and their answers. */
export class Prompts {
  readonly #options: PromptsOptions;
  /** By the ids of the prompts. */
  readonly #waiting = new Map<string, Waiting>();
  #lastCancel: Promise<void> = Promise.resolve();
  /** Waits for the last one. */
  #nextCancel: Promise<void> | undefined;

  constructor(options: PromptsOptions) {
    this.#options = options;
  }

  /** Sends a prompt. Resolves with its answer, when its run has ended and everything of it is out. */
  async prompt({ prompt, _meta }: Given, signal: AbortSignal): Promise<object> {
    const { port, sessionId, left, caughtUp, usageOf } = this.#options;
    const { text, images } = promptContent(prompt as Parameters<typeof promptContent>[0]);
    const promptId = randomUUID();
    const waiting: Waiting = { isCancelled: false, isQueued: false };
    this.#waiting.set(promptId, waiting);
    // The run goes on if the client has gone.
    const stop = (): void => void (left.aborted || this.cancel());
    signal.addEventListener("abort", stop, { once: true });
    try {
      // An abort that was asked for before must not end this prompt's run.
      await (this.#nextCancel ?? this.#lastCancel);
      const builtin = await this.#builtinIn(text);
      if (waiting.isCancelled) return cancelled;
      if (builtin !== undefined) return await this.#perform(builtin, waiting);
      waiting.isQueued = true;
      const given = isRecord(_meta) && isRecord(_meta["pi-rpcd"]) ? _meta["pi-rpcd"]["ifRunning"] : undefined;
      const ifRunning: Params<"session/prompt">["ifRunning"] =
        given === "followUp" || given === "refuse" ? given : "steer";
      const params = { sessionId, promptId, text, ifRunning, ...(images.length === 0 ? {} : { images: [...images] }) };
      const taken = await port.call("session/prompt", params);
      if (taken.disposition === "started" && taken.runId !== undefined) waiting.runId = taken.runId;
      // The cancellation may have come before the daemon had the prompt.
      if (waiting.isCancelled) await this.#end(promptId, waiting);
      const result = taken.disposition === "handled" ? taken : await this.#settled(promptId);
      await caughtUp();
      return answerTo(waiting.isCancelled ? { ...result, outcome: "aborted" } : result, usageOf);
    } catch (error) {
      if (!waiting.isCancelled) throw error;
      return cancelled;
    } finally {
      this.#waiting.delete(promptId);
      signal.removeEventListener("abort", stop);
    }
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
      await Promise.all(Array.from(this.#waiting.values(), (waiting) => this.#endRun(waiting)));
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

  /** Ends one prompt, and the run that it began. */
  async #end(promptId: string, waiting: Waiting): Promise<void> {
    await this.#options.port.call("prompt/cancel", { promptId }).catch(() => {});
    await this.#endRun(waiting);
  }

  async #endRun({ runId }: Waiting): Promise<void> {
    const { port, sessionId } = this.#options;
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

  async #perform(builtin: Builtin, waiting: Waiting): Promise<object> {
    const words = await unlessAborted(builtin.perform(this.#options), this.#options.left);
    if (words !== undefined) this.#options.say(words);
    await this.#options.caughtUp();
    return waiting.isCancelled ? cancelled : { stopReason: "end_turn" };
  }
}

/** The answer to a prompt whose run has ended. Throws {@link AcpError} for a run that failed. */
function answerTo(result: PromptResult, usageOf: PromptsOptions["usageOf"]): object {
  const { promptId, runId, state, outcome, stopReason, error, disposition } = result;
  const answer = (reason: string): object => ({
    stopReason: reason,
    _meta: { "pi-rpcd": { promptId, ...(runId === undefined ? {} : { runId, ...usageOf(runId) }) } },
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

/** Rejects with the signal's reason when it is aborted first. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  signal.throwIfAborted();
  signal.addEventListener("abort", abort, { once: true });
  return await Promise.race([promise, aborted.promise]).finally(() => signal.removeEventListener("abort", abort));
}
