import type { PromptResult } from "../protocol/prompt.ts";
import type { PromptAnswers, SentPrompt } from "./prompts.ts";
import { settled, stopReasonOf } from "./run-end.ts";
import type { SessionParts } from "./session-version.ts";

const cancelled = { stopReason: "cancelled" };

/** Version 1 answers a prompt when its run has ended, and everything of it is out. */
export class AnswersAtEnd implements PromptAnswers {
  readonly #parts: SessionParts;

  constructor(parts: SessionParts) {
    this.#parts = parts;
  }

  cancelled(): Promise<object> {
    return Promise.resolve(cancelled);
  }

  async command(prompt: SentPrompt, perform: () => Promise<string | undefined>): Promise<object> {
    const words = await unlessAborted(perform(), this.#parts.left);
    if (words !== undefined) this.#parts.say(words);
    await this.#parts.caughtUp();
    return prompt.isCancelled ? cancelled : { stopReason: "end_turn" };
  }

  async message(prompt: SentPrompt, send: () => Promise<PromptResult>): Promise<object> {
    const { port, left, caughtUp } = this.#parts;
    const taken = await send();
    const result = taken.disposition === "handled" ? taken : await settled(port, prompt.promptId, left);
    await caughtUp();
    return this.#answerTo(prompt.isCancelled ? { ...result, outcome: "aborted" } : result);
  }

  #answerTo(result: PromptResult): object {
    const { promptId, runId } = result;
    const ofRun = runId === undefined ? {} : { runId, ...this.#parts.usageOf(runId) };
    return { stopReason: reasonOf(result), _meta: { "pi-rpcd": { promptId, ...ofRun } } };
  }
}

function reasonOf(result: PromptResult): string {
  const { promptId, runId, state, disposition, outcome } = result;
  if (outcome === "aborted" || state === "withdrawn") return "cancelled";
  if (disposition === "handled") return "end_turn";
  return stopReasonOf(result, { promptId, runId, ...(outcome === "failed" ? {} : { state }) });
}

/** Rejects with the signal's reason when it is aborted first, or already. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = Promise.withResolvers<never>();
  const abort = (): void => aborted.reject(signal.reason);
  // Without a throw here: nobody would handle the promise's own error, which ends the process.
  if (signal.aborted) abort();
  signal.addEventListener("abort", abort, { once: true });
  return await Promise.race([promise, aborted.promise]).finally(() => signal.removeEventListener("abort", abort));
}
