import type { Follower, Port } from "../../acp/port.ts";
import type { Client } from "../../client/client.ts";
import type { FeedListener } from "../../client/session-feed.ts";

/** The daemon, through the client library: calls and sessions outlive a lost connection. */
export function clientPort(client: Client): Port {
  const leaves = new Map<string, () => void>();
  return {
    answersDialogs: true,
    call: (method, params, signal) => client.call(method, params, signal === undefined ? {} : { signal }),
    follow: (sessionId, follower, place) => {
      const listener = listenerOf(follower);
      const session = client.session(sessionId);
      const leave = session.listen(listener, place);
      // In this order, so that the session is never without a follower.
      leaves.get(sessionId)?.();
      leaves.set(sessionId, leave);
      return () => {
        leave();
        if (leaves.get(sessionId) === leave) leaves.delete(sessionId);
      };
    },
  };
}

function listenerOf(follower: Follower): FeedListener {
  return {
    dialogs: true,
    more: { catchUp: true, formerText: true },
    begin: (start) => follower.begin(start),
    gap: ({ from, to, reason, ...gap }) => {
      const { onlyDeltas } = gap as { readonly onlyDeltas?: boolean };
      follower.gap({ from, to, ...(onlyDeltas === undefined ? {} : { onlyDeltas }) });
    },
    formerText: (params) => follower.receive({ name: "session/formerText", params }),
    receive: (notification) => follower.receive(notification),
    end: (end) => follower.end(end),
  };
}
