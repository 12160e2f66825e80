import { WireError } from "../../../protocol/errors.ts";
import type { subscriptionMethods } from "../../../protocol/subscription-methods.ts";
import type { Registry } from "../../session/registry.ts";
import type { Call, HandlersOf, Peer } from "../call.ts";

export function subscriptionHandlers(registry: Registry): HandlersOf<typeof subscriptionMethods> {
  return {
    "session/subscribe": ({ sessionId, after, provider }, call) => {
      const { cursor, gap } = registry.get(sessionId).subscribe(peerOf(call), after, provider);
      return { cursor, ...(gap === undefined ? {} : { gap }) };
    },
    "session/unsubscribe": ({ sessionId }, call) => ({
      // A session that was closed meanwhile has no subscriptions.
      wasSubscribed: registry.find(sessionId)?.unsubscribe(peerOf(call).id) ?? false,
    }),
  };
}

function peerOf({ peer }: Call): Peer {
  if (peer === undefined) {
    throw new WireError("invalid_request", "Subscriptions need a connection that stays open: use the WebSocket.");
  }
  return peer;
}
