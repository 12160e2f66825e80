import type { DeliveryTracker } from "../../delivery/tracker.ts";
import type { Registry } from "../../session/registry.ts";
import type { Handlers } from "../call.ts";

type DeliveryMethods = Extract<keyof Handlers, `delivery/${string}`>;

const defaultWaitMs = 60_000;

export function deliveryHandlers(registry: Registry, tracker: DeliveryTracker): Pick<Handlers, DeliveryMethods> {
  return {
    "delivery/push": async (params) => {
      const session = registry.get(params.sessionId);
      const delivery = await tracker.accept(params);
      void session.pushing.handOver();
      return delivery;
    },
    "delivery/wait": ({ deliveryId, until, timeoutMs }, { signal }) =>
      tracker.wait(deliveryId, until ?? "delivered", timeoutMs ?? defaultWaitMs, signal),
    "delivery/get": ({ deliveryId }) => tracker.get(deliveryId),
  };
}
