import type { requestMethods } from "../../../protocol/request-methods.ts";
import { withCarriedPushes } from "../../context/cost/carried-pushes.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";

const defaultLimit = 200;
/** The newest pushes of a session that are looked through; older ones are rarely kept. */
const maxDeliveries = 500;

export function requestHandlers(registry: Registry, tracker: DeliveryTracker): HandlersOf<typeof requestMethods> {
  return {
    "request/list": async ({ sessionId, limit = defaultLimit }, { signal }) => {
      const { requests, isWhole } = await registry.get(sessionId).costs.requests(limit, signal);
      const { deliveries } = await tracker.list({ sessionId, limit: maxDeliveries });
      return { requests: [...withCarriedPushes(requests, deliveries)], isWhole };
    },
  };
}
