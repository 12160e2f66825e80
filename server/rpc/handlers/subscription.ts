import type { subscriptionMethods } from "../../../protocol/subscription-methods.ts";
import { pageOf } from "../../log/event-page.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";
import { peerOf } from "./peer.ts";

export function subscriptionHandlers(registry: Registry): HandlersOf<typeof subscriptionMethods> {
  return {
    "session/subscribe": async ({ sessionId, snapshot, after, epoch, awake, ...wanted }, call) => {
      const peer = peerOf(call);
      const orders = { ...wanted, clientId: call.by?.clientId };
      const session = registry.get(sessionId);
      const whenAnswered = call.whenAnswered?.bind(call);
      const { journal } = session;
      if (awake !== undefined) session.supervisor.require(peer, awake);
      if (snapshot !== true || (after !== undefined && journal.continues({ after, epoch }))) {
        const cursor = session.subscribe(peer, { ...orders, after, epoch, whenAnswered });
        return { cursor, epoch: journal.epoch };
      }
      const taken = await session.snapshot();
      const { cursor } = taken.session;
      session.subscribe(peer, { ...orders, after: cursor, whenAnswered });
      return { cursor, epoch: journal.epoch, ...taken };
    },
    "session/unsubscribe": ({ sessionId }, call) => {
      const { id } = peerOf(call);
      // A session that was closed meanwhile has no subscriptions.
      return { wasSubscribed: registry.find(sessionId)?.unsubscribe(id) ?? false };
    },
    "session/events": ({ sessionId, after, epoch, limit = 100, ...wanted }) => {
      const { journal } = registry.get(sessionId);
      return { ...pageOf(journal, { after, epoch }, wanted, limit), cursor: journal.cursor, epoch: journal.epoch };
    },
  };
}
