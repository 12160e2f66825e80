import { WireError } from "../../protocol/errors.ts";
import type { BuiltMessage } from "../../protocol/link-context.ts";
import { estimateMessage } from "./estimate.ts";
import { fitMessages, noticeOf } from "./fit.ts";

/**
 * What of a context's messages fits into its budget, halved for each compaction: no summary of pi's covers them, so they
 * must grow fewer by themselves. A context without a budget has its own size for one. Where not even the newest span
 * fits, a notice alone stands for all of it.
 */
export function trimmed(
  messages: readonly BuiltMessage[],
  budget: number | null,
  compactions: number,
): readonly BuiltMessage[] {
  const whole = budget ?? messages.reduce((tokens, message) => tokens + estimateMessage(message), 0);
  try {
    return fitMessages(messages, { budget: Math.floor(whole / 2 ** compactions) }).messages;
  } catch (thrown) {
    if (thrown instanceof WireError && thrown.kind === "context_over_budget") return [noticeOf(messages)];
    throw thrown;
  }
}
