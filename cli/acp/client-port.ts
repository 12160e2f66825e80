import type { Follower, Place, Port } from "../../acp/port.ts";
import type { Client } from "../../client/client.ts";
import { InvalidParamsError, UnknownMethodError } from "../../client/local-errors.ts";
import type { FeedListener } from "../../client/session-feed.ts";
import { WireError } from "../../protocol/errors.ts";

/** The daemon, through the client library: calls and sessions outlive a lost connection. */
export function clientPort(client: Client): Port {
  const leaves = new Map<string, () => void>();
  return {
    answersDialogs: true,
    call: async (method, params, signal) => {
      try {
        return await client.call(method, params, signal === undefined ? {} : { signal });
      } catch (error) {
        throw asOfDaemon(error);
      }
    },
    follow: (sessionId, follower, place) => {
      const listener = listenerOf(follower, place);
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

/** The library refuses some calls before they are sent, with the words that the daemon would have. */
function asOfDaemon(error: unknown): unknown {
  if (error instanceof UnknownMethodError) return new WireError("method_not_found", error.message);
  if (error instanceof InvalidParamsError)
    return new WireError("invalid_params", error.message, { errors: error.findings });
  return error;
}

function listenerOf(follower: Follower, place: Place | undefined): FeedListener {
  return {
    dialogs: true,
    more: { catchUp: true, formerText: true },
    // The cursor is the newest of the log, and what follows `place` comes first.
    begin: ({ cursor, epoch }) => follower.begin({ cursor: place?.after ?? cursor, epoch }),
    resume: (start) => follower.resume?.(start),
    gap: ({ from, to, reason, ...gap }) => {
      const { onlyDeltas } = gap as { readonly onlyDeltas?: boolean };
      follower.gap({ from, to, ...(onlyDeltas === undefined ? {} : { onlyDeltas }) });
    },
    formerText: (params) => follower.receive({ name: "session/formerText", params }),
    receive: (notification) => follower.receive(notification),
    end: (end) => follower.end(end),
  };
}
