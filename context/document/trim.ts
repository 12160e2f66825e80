import { WireError } from "../../protocol/errors.ts";
import type { BuiltMessage } from "../../protocol/link-context.ts";
import { estimateMessage } from "./estimate.ts";
import { fitMessages, noticeOf } from "./fit.ts";

/**
 * Returns the messages of a context that fit into its budget, halved for each compaction: pi's summaries do not cover
 * them, so they must shrink on their own. Without a budget, the context's own size is the budget. If even the newest
 * span does not fit, a notice replaces all messages.
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
