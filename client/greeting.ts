import { PROTOCOL_VERSION } from "../protocol/wire.ts";
import type { Channel } from "./channel.ts";
import { ProtocolMismatchError, ProtocolViolationError } from "./local-errors.ts";

/** What the daemon knows a client by, over all its connections. */
export interface ClientIdentity {
  readonly id: string;
  /** For people. */
  readonly name?: string;
}

/** The first request of each connection: throws if the daemon speaks another protocol, and says which process it is. */
export async function greet(channel: Channel, signal: AbortSignal): Promise<string> {
  const info = (await channel.request("daemon/info", {}, signal)) as Readonly<Record<string, unknown>> | null;
  const { protocol, version, pid, startedAt } = info ?? {};
  if (protocol === PROTOCOL_VERSION) return `${pid} ${startedAt}`;
  if (typeof protocol !== "number") {
    throw new ProtocolViolationError("result of daemon/info", [{ path: "/protocol", message: "is not a number" }]);
  }
  const daemonVersion = String(version);
  throw new ProtocolMismatchError({ client: PROTOCOL_VERSION, daemon: protocol, daemonVersion });
}

/** Says whose connection it is. Not waited for: what is sent behind it is dealt with behind it. */
export function introduce(channel: Channel, client: ClientIdentity): void {
  // A daemon that does not know the method knows the client by its connection.
  channel.request("daemon/hello", { client }).catch(() => {});
}
