import { CARRIER_TYPE } from "../../protocol/link.ts";
import type { AgentMessage } from "../pi-types.ts";

/** Text of a carrier that cannot be left out. */
export const carrierText = "Go on with the messages above that have not been answered yet.";

/**
 * Removes carriers, which only start a run. A carrier directly after a complete answer stays: a request must not end
 * with an assistant message, and later requests must have the same history. Returns the list itself if there is nothing
 * to remove.
 */
export function withoutCarriers(messages: readonly AgentMessage[]): readonly AgentMessage[] {
  if (!messages.some(isCarrier)) return messages;
  const kept: AgentMessage[] = [];
  let isAfterAnswer = false;
  for (const message of messages) {
    if (isCarrier(message) && !isAfterAnswer) continue;
    kept.push(message);
    if (countsForOrder(message)) isAfterAnswer = message.role === "assistant";
  }
  return kept;
}

function isCarrier(message: AgentMessage): boolean {
  return message.role === "custom" && message.customType === CARRIER_TYPE;
}

/** pi leaves failed answers out of requests, and system messages do not count. */
function countsForOrder(message: AgentMessage): boolean {
  if (message.role === "assistant") return message.stopReason !== "error" && message.stopReason !== "aborted";
  return message.role !== "system";
}
