import type { Session } from "../session/session.ts";
import type { Call } from "./call.ts";

/**
 * What to call at pi's response, so that the answer gets the same place among the session's notifications. Undefined: the
 * peer has not asked for that.
 */
export function atResponse({ journal: { subscriptions } }: Session, call: Call): (() => void) | undefined {
  const { peer } = call;
  if (peer === undefined || call.answerAt === undefined || !subscriptions.ordersAnswers(peer.id)) return undefined;
  return () => {
    const place = subscriptions.place(peer.id);
    if (place !== undefined) call.answerAt?.(place);
  };
}
