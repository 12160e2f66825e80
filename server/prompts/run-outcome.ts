import type { RunOutcome } from "../../protocol/prompt.ts";
import { textOf } from "../log/user-entries.ts";
import { isRecordObject } from "../pi/records.ts";

/** What pi said of a run by its end. */
export interface RunFacts {
  /** `aborted` of pi's `agent_settled`; undefined where pi is too old to say it. */
  readonly settledAborted: boolean | undefined;
  /** Whether a client's abort was written to pi during the run, and no message was finished behind it. */
  readonly abortWasSent: boolean;
  /** The last assistant message that was complete. */
  readonly last: AssistantEnd | undefined;
}

/** The end of an assistant message. */
export interface AssistantEnd {
  readonly stopReason: string | undefined;
  readonly error: string | undefined;
  readonly text: string;
  /** Whether there was more text than is kept. */
  readonly isCut: boolean;
}

const maxTextBytes = 64 * 1024;
const maxErrorLength = 2_000;

/**
 * How a run ended that pi has settled. pi's own word for an abort comes first; an older pi has none, and there the last
 * message says it, or the abort that was sent: an abort in the midst of a tool ends there with an error (0.87.1). `failed`:
 * the last message is an error, and pi tries no more.
 */
export function outcomeOf({ settledAborted, abortWasSent, last }: RunFacts): Exclude<RunOutcome, "interrupted"> {
  const stopReason = last?.stopReason;
  if (settledAborted === true || stopReason === "aborted") return "aborted";
  if (settledAborted === undefined && abortWasSent) return "aborted";
  return stopReason === "error" ? "failed" : "settled";
}

/** The end of an assistant's message, as `message_end` brings it; undefined for a message of anybody else. */
export function assistantEnd(message: unknown): AssistantEnd | undefined {
  if (!isRecordObject(message) || message["role"] !== "assistant") return undefined;
  const { stopReason, errorMessage } = message;
  const whole = Buffer.from(textOf(message["content"]) ?? "");
  const isCut = whole.length > maxTextBytes;
  // A character that is cut in the middle is left out.
  const text = isCut ? whole.toString("utf8", 0, maxTextBytes).replace(/\ufffd+$/, "") : whole.toString("utf8");
  return {
    stopReason: typeof stopReason === "string" ? stopReason.slice(0, 64) : undefined,
    error: typeof errorMessage === "string" ? errorMessage.slice(0, maxErrorLength) : undefined,
    text,
    isCut,
  };
}
