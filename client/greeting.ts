import { PROTOCOL_VERSION } from "../protocol/wire.ts";
import type { Channel } from "./channel.ts";
import { ProtocolMismatchError, ProtocolViolationError } from "./local-errors.ts";

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
