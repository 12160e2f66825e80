import { WireError } from "../../../protocol/errors.ts";
import type { Call, Peer } from "../call.ts";

/** To whom notifications are sent later. Throws `invalid_request` where that cannot be. */
export function peerOf({ peer }: Call): Peer {
  if (peer === undefined) {
    throw new WireError("invalid_request", "Subscriptions need a connection that stays open: use the WebSocket.");
  }
  return peer;
}
