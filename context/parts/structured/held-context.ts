import { type AgentMessage, isObject } from "../../../extension/pi-types.ts";
import { withoutCarriers } from "../../../extension/stages/carrier.ts";
import { DELIVERY_MARK } from "../../../protocol/link.ts";
import type { BuiltMessage, HelperContext } from "../../../protocol/link-context.ts";

/** A context that this process holds for its conversation. Part of the memory that outlives the modules. */
export interface HeldContext extends HelperContext {
  /** The session whose conversation it belongs to. */
  readonly sessionId: string;
  /** How many compactions stood on the branch when it came: those are none of its own. */
  readonly compactionsBefore: number;
}

/**
 * A context as it is held. What another session's deliveries have left in it says nothing in this one: their marks would
 * be taken for deliveries of this session, and their carriers would be shown to the model.
 */
export function heldContext(
  context: HelperContext,
  at: Pick<HeldContext, "sessionId" | "compactionsBefore">,
): HeldContext {
  const messages = withoutCarriers(context.messages as readonly AgentMessage[]) as readonly BuiltMessage[];
  return { ...context, messages: messages.map(withoutMark), ...at };
}

function withoutMark(message: BuiltMessage): BuiltMessage {
  if (message.role !== "custom" || !isObject(message.details) || !Object.hasOwn(message.details, DELIVERY_MARK)) {
    return message;
  }
  const { [DELIVERY_MARK]: _, ...details } = message.details;
  return { ...message, details };
}
