import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { Kept, Memory } from "../../../extension/memory.ts";
import type { AgentMessage } from "../../../extension/pi-types.ts";
import { KEPT_CONTEXT } from "../../../extension/session-context.ts";
import { withoutCarriers } from "../../../extension/stages/carrier.ts";
import { DELIVERY_MARK } from "../../../protocol/link.ts";
import type { BuiltMessage, HelperContext } from "../../../protocol/link-context.ts";
import { isRecord } from "../../../protocol/objects.ts";

/** A context that this process keeps for its conversation. */
export interface HeldContext extends HelperContext {
  /** The session whose conversation it belongs to. */
  readonly sessionId: string;
  /** Number of compactions on the branch when it arrived; they did not shorten it. */
  readonly compactionsBefore: number;
}

/** The context that outlives a reload of the modules. */
export function keptContext({ kept }: Pick<Memory, "kept">): Kept<HeldContext> {
  return kept.of(KEPT_CONTEXT);
}

/** The messages of the kept context if it belongs to this session. */
export function heldMessages(
  memory: Pick<Memory, "kept">,
  { sessionManager }: ExtensionContext,
): readonly AgentMessage[] {
  const held = keptContext(memory).value;
  // pi's types are wider and mutable.
  return held?.sessionId === sessionManager.getSessionId()
    ? (held.messages as readonly unknown[] as AgentMessage[])
    : [];
}

/**
 * Prepares a context for this session. Removes the marks of another session's deliveries, which would be taken for
 * deliveries of this session, and its carriers, which the model must not see.
 */
export function heldContext(
  context: HelperContext,
  at: Pick<HeldContext, "sessionId" | "compactionsBefore">,
): HeldContext {
  const messages = withoutCarriers(context.messages as readonly AgentMessage[]) as readonly BuiltMessage[];
  return { ...context, messages: messages.map(withoutMark), ...at };
}

function withoutMark(message: BuiltMessage): BuiltMessage {
  if (message.role !== "custom" || !isRecord(message.details) || !Object.hasOwn(message.details, DELIVERY_MARK)) {
    return message;
  }
  const { [DELIVERY_MARK]: _, ...details } = message.details;
  return { ...message, details };
}
