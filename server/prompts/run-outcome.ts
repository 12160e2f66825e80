import { isRecord } from "../../protocol/objects.ts";
import type { RunOutcome } from "../../protocol/prompt.ts";
import { textOf } from "../log/user-entries.ts";

/** Facts about a run at its end. */
export interface RunFacts {
  /** `aborted` of pi's `agent_settled`; undefined if pi is too old to report it. */
  readonly settledAborted: boolean | undefined;
  /** Whether a client's abort was written to pi during the run, and no message was finished after it. */
  readonly abortWasSent: boolean;
  /** The last complete assistant message. */
  readonly last: AssistantEnd | undefined;
}

/** The end of an assistant message. */
export interface AssistantEnd {
  readonly stopReason: string | undefined;
  readonly error: string | undefined;
  readonly text: string;
  /** Whether the text was cut. */
  readonly isCut: boolean;
}

const maxTextBytes = 64 * 1024;
const maxErrorLength = 2_000;

/**
 * The outcome of a settled run. pi's own `aborted` decides first. An older pi does not report it; then the last
 * message decides, or the abort that was sent: an abort during a tool ends with an error there (0.87.1). `failed`:
 * the last message is an error, and pi does not retry.
 */
export function outcomeOf({ settledAborted, abortWasSent, last }: RunFacts): Exclude<RunOutcome, "interrupted"> {
  const stopReason = last?.stopReason;
  if (settledAborted === true || stopReason === "aborted") return "aborted";
  if (settledAborted === undefined && abortWasSent) return "aborted";
  return stopReason === "error" ? "failed" : "settled";
}

/** The end of an assistant message from `message_end`; undefined for other messages. */
export function assistantEnd(message: unknown): AssistantEnd | undefined {
  if (!isRecord(message) || message["role"] !== "assistant") return undefined;
  const { stopReason, errorMessage } = message;
  const whole = Buffer.from(textOf(message["content"]) ?? "");
  const isCut = whole.length > maxTextBytes;
  // A character that is cut in half is dropped.
  const text = isCut ? whole.toString("utf8", 0, maxTextBytes).replace(/\ufffd+$/, "") : whole.toString("utf8");
  return {
    stopReason: typeof stopReason === "string" ? stopReason.slice(0, 64) : undefined,
    error: typeof errorMessage === "string" ? errorMessage.slice(0, maxErrorLength) : undefined,
    text,
    isCut,
  };
}
