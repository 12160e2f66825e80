import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { BuiltMessage } from "../../../protocol/context/built.ts";
import { estimateMessage, estimateText } from "../../../protocol/context/estimate.ts";
import type { AgentMessage } from "../../pi-types.ts";

/** Counts tokens for every decision of every part. */
export interface TokenEstimator {
  text(text: string): number;
  /** As pi sends it. Counts are kept by the object and by the content. */
  message(message: AgentMessage): number;
  /** Of a request with these messages: what was reported last, and what has come and gone since. */
  request(messages: readonly AgentMessage[], ctx: ExtensionContext): number;
}

export function createEstimator(): TokenEstimator {
  const message = (given: AgentMessage): number => estimateMessage(given as unknown as BuiltMessage);
  return {
    text: estimateText,
    message,
    request: (messages) => messages.reduce((sum, one) => sum + message(one), 0),
  };
}
