import { WireError } from "../protocol/errors.ts";
import type { PromptResult, RunOutcome } from "../protocol/prompt.ts";
import { AcpError } from "./acp-error.ts";
import type { Port } from "./port.ts";

/** How a run has ended. */
export interface RunEnd {
  /** Absent: there was none. */
  readonly outcome?: RunOutcome | undefined;
  readonly stopReason?: string | undefined;
  readonly error?: string | undefined;
}

/** How long one wait for a run takes before it is repeated. */
const waitMs = 60_000;

/** The words of providers that refuse a key. */
const refusedKey = /\b(?:401|403)\b|unauthori[sz]ed|invalid (?:x-)?api[ -]key|authentication/i;

/** The stop reason of a run that has ended. Throws {@link AcpError} for one that failed, with `data`. */
export function stopReasonOf(end: RunEnd, data: object): "end_turn" | "max_tokens" | "cancelled" {
  const { outcome, stopReason, error } = end;
  if (outcome === "aborted") return "cancelled";
  if (outcome === "failed" || stopReason === "error") {
    const words = error ?? "The model's provider failed.";
    throw new AcpError(refusedKey.test(words) ? "authRequired" : "internalError", words, data);
  }
  if (outcome !== "settled") throw new AcpError("internalError", "pi ended in the middle of the run.", data);
  return stopReason === "length" ? "max_tokens" : "end_turn";
}

/** Resolves when the prompt and its run are over. */
export async function settled(port: Port, promptId: string, signal: AbortSignal): Promise<PromptResult> {
  for (;;) {
    try {
      return await port.call("prompt/wait", { promptId, timeoutMs: waitMs }, signal);
    } catch (error) {
      if (!(error instanceof WireError && error.kind === "deadline_exceeded")) throw error;
    }
  }
}
