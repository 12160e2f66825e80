import { CARRIER_TYPE } from "../../protocol/link.ts";
import type { AgentMessage } from "../pi-types.ts";

/** What a carrier says where it cannot be left out. */
export const carrierText = "Go on with the messages above that have not been answered yet.";

/**
 * The message list without carriers, which only start a run. One that stands directly behind a complete answer stays:
 * a request must not end with the model's own words, and each later request must have the same past. Gives the list
 * itself when there is nothing to leave out.
 */
export function withoutCarriers(messages: readonly AgentMessage[]): readonly AgentMessage[] {
  if (!messages.some(isCarrier)) return messages;
  const kept: AgentMessage[] = [];
  let isBehindAnswer = false;
  for (const message of messages) {
    if (isCarrier(message) && !isBehindAnswer) continue;
    kept.push(message);
    if (countsForOrder(message)) isBehindAnswer = message.role === "assistant";
  }
  return kept;
}

function isCarrier(message: AgentMessage): boolean {
  return message.role === "custom" && message.customType === CARRIER_TYPE;
}

/** pi leaves failed answers out of requests, and system messages are no part of the exchange. */
function countsForOrder(message: AgentMessage): boolean {
  if (message.role === "assistant") return message.stopReason !== "error" && message.stopReason !== "aborted";
  return message.role !== "system";
}
