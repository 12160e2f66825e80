import type { sessionMethods } from "../../../protocol/session-methods.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import type { Registry } from "../../session/registry.ts";
import { sessionPage } from "../../session/session-page.ts";
import type { HandlersOf } from "../call.ts";

export function sessionHandlers(registry: Registry, tracker: DeliveryTracker): HandlersOf<typeof sessionMethods> {
  return {
    "session/create": async (params, { subject }) => (await registry.create(params, subject?.id)).info(),
    "session/list": (params) => sessionPage(registry, params),
    "session/get": ({ sessionId }) => registry.get(sessionId).info(),
    "session/close": async ({ sessionId }, { by }) => {
      const underWay = tracker.underWay(sessionId);
      const exit = await registry.get(sessionId).acting(by, () => registry.close(sessionId));
      return { ...(exit === undefined ? {} : { exit }), deliveries: tracker.effects(underWay) };
    },
  };
}
