import type { subscriptionMethods } from "../../../protocol/subscription-methods.ts";
import { pageOf } from "../../log/event-page.ts";
import type { SubscribeOptions } from "../../log/journal.ts";
import type { Registry } from "../../session/registry.ts";
import type { Session } from "../../session/session.ts";
import { behindFrames, type Call, type HandlersOf, type Peer, peerOf } from "../call.ts";
import { namedTokensPercent, Quota } from "../quota.ts";

export interface SubscriptionLimits {
  /** Of all connections. */
  readonly maxSubscriptions: number;
  /** Of one named token. */
  readonly maxSubscriptionsPerToken: number;
}

export function subscriptionHandlers(
  registry: Registry,
  { maxSubscriptions: max, maxSubscriptionsPerToken: maxPerToken }: SubscriptionLimits,
): HandlersOf<typeof subscriptionMethods> {
  const held = new Quota({ what: "subscriptions", max, maxPerToken, namedTokensPercent });
  const isKnown = ({ journal }: Session, peer: Peer): boolean => journal.subscriptions.has(peer.id);
  const requireRoom = (session: Session, peer: Peer, { grant }: Call): void => {
    const full = isKnown(session, peer) ? undefined : held.refusal(grant, 1);
    if (full !== undefined) throw full;
  };
  const subscribe = (session: Session, peer: Peer, call: Call, options: SubscribeOptions): number => {
    requireRoom(session, peer, call);
    const wasKnown = isKnown(session, peer);
    const { grant } = call;
    const cursor = session.subscribe(peer, { ...options, onEnd: () => held.add(grant, -1) });
    // A peer that has gone in the meantime is not subscribed.
    if (!wasKnown && isKnown(session, peer)) held.add(grant, 1);
    // What waits for a slow peer may be of an earlier subscription, also of one that has ended.
    call.answerAt?.(session.journal.subscriptions.place(peer.id) ?? behindFrames(peer));
    return cursor;
  };
  return {
    "session/subscribe": async ({ sessionId, snapshot, catchUp, after, epoch, awake, ...wanted }, call) => {
      const peer = peerOf(call);
      const orders = { ...wanted, clientId: call.by?.clientId };
      const session = registry.get(sessionId);
      const whenAnswered = call.whenAnswered?.bind(call);
      const { journal } = session;
      requireRoom(session, peer, call);
      if (awake !== undefined) session.supervisor.require(peer, awake);
      // While a former daemon's log is continued, it is not known what is open.
      if (catchUp === true && snapshot !== true && after === undefined && !journal.isReplaying) {
        const { after: cursor, present } = journal.catchUp();
        subscribe(session, peer, call, { ...orders, after: cursor, whenAnswered });
        return { cursor, epoch: journal.epoch, present };
      }
      if (snapshot !== true || (after !== undefined && journal.continues({ after, epoch }))) {
        const cursor = subscribe(session, peer, call, { ...orders, after, epoch, whenAnswered });
        return { cursor, epoch: journal.epoch };
      }
      const taken = await session.snapshot();
      const { cursor } = taken.session;
      subscribe(session, peer, call, { ...orders, after: cursor, whenAnswered });
      return { cursor, epoch: journal.epoch, ...taken };
    },
    "session/unsubscribe": ({ sessionId }, call) => {
      const { id } = peerOf(call);
      // A session that was closed in the meantime has no subscriptions.
      return { wasSubscribed: registry.find(sessionId)?.unsubscribe(id) ?? false };
    },
    "session/events": ({ sessionId, after, epoch, limit = 100, ...wanted }) => {
      const { journal } = registry.get(sessionId);
      return { ...pageOf(journal, { after, epoch }, wanted, limit), cursor: journal.cursor, epoch: journal.epoch };
    },
  };
}
