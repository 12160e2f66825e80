import type { BuiltMessage } from "../../../protocol/context/built.ts";
import { estimateMessage } from "../../../protocol/context/estimate.ts";
import { fitMessages } from "../../../protocol/context/fit.ts";

/**
 * What of a context's messages fits into its budget, halved for each compaction: pi's summary says nothing of them, so
 * that they must grow fewer by themselves. A context without a budget has its own size for one. `undefined` budget.
 */
export function trimmed(
  messages: readonly BuiltMessage[],
  budget: number | null,
  compactions: number,
): readonly BuiltMessage[] {
  const whole = budget ?? messages.reduce((tokens, message) => tokens + estimateMessage(message), 0);
  return fitMessages(messages, { budget: Math.floor(whole / 2 ** compactions) }).messages;
}
