import { WireError } from "../../../protocol/errors.ts";
import type { Withdrawal } from "../../delivery/tracked.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import { unlessAborted } from "../../lib/deadline.ts";
import type { Registry } from "../../session/registry.ts";
import type { Handlers } from "../call.ts";

type DeliveryMethods = Extract<keyof Handlers, `delivery/${string}`>;

const defaultWaitMs = 60_000;

export function deliveryHandlers(registry: Registry, tracker: DeliveryTracker): Pick<Handlers, DeliveryMethods> {
  return {
    "delivery/push": async ({ until, timeoutMs, ...params }, { signal, by }) => {
      const session = registry.get(params.sessionId);
      if (session.loss !== undefined) throw session.loss;
      const delivery = await tracker.accept(params, by);
      void session.pushing.handOver();
      if (until === undefined) return delivery;
      return await tracker.wait(delivery.deliveryId, until, timeoutMs ?? defaultWaitMs, signal);
    },
    "delivery/wait": ({ deliveryId, until, timeoutMs }, { signal }) =>
      tracker.wait(deliveryId, until ?? "delivered", timeoutMs ?? defaultWaitMs, signal),
    "delivery/get": async ({ deliveryId, content = false }) => {
      const delivery = await tracker.read(deliveryId);
      return content ? { ...delivery, content: tracker.pushed(deliveryId).content } : delivery;
    },
    "delivery/list": (params, { grant }) => {
      const covers = grant?.limits;
      if (covers === undefined) return tracker.list(params);
      const known = registry.all().filter(({ stored }) => covers(stored));
      return tracker.list(
        params,
        known.map(({ sessionId }) => sessionId),
      );
    },
    "delivery/cancel": async ({ deliveryId }, { signal, by }) => {
      const { sessionId } = tracker.get(deliveryId);
      // A session that was closed in the meantime has no open deliveries.
      const withdrawn = registry.find(sessionId)?.pushing.withdraw([deliveryId], { ...cancelled(), by });
      await unlessAborted(withdrawn, signal);
      const delivery = await tracker.read(deliveryId);
      return { cancelled: delivery.state === "cancelled", delivery };
    },
    "delivery/resend": async ({ deliveryId }, { signal, by }) => {
      // Nothing is awaited before the call is queued, so that later calls come after it.
      const { state, sessionId } = tracker.get(deliveryId);
      if (state !== "parked") {
        const delivery = await tracker.read(deliveryId);
        throw new WireError(
          "wrong_state",
          `The delivery is ${delivery.state}: only a parked delivery can be sent again.`,
          {
            delivery,
          },
        );
      }
      await unlessAborted(registry.get(sessionId).pushing.resend(deliveryId, signal, by), signal);
      return await tracker.read(deliveryId);
    },
  };
}

function cancelled(): Withdrawal {
  const reason = { code: "cancelled", message: "A client withdrew it before it was inserted." } as const;
  return { kind: "withdrawn", at: Date.now(), as: "cancelled", reason };
}
