import type { By } from "../../../protocol/client-identity.ts";
import type { controlMethods } from "../../../protocol/control-methods.ts";
import { WireError } from "../../../protocol/errors.ts";
import type { Registry } from "../../session/registry.ts";
import { type Call, type HandlersOf, type Peer, peerOf } from "../call.ts";
import type { Clients } from "../clients.ts";

const defaultTtlMs = 60_000;

export function controlHandlers(registry: Registry, clients: Clients): HandlersOf<typeof controlMethods> {
  return {
    "daemon/hello": ({ client }, call) => clients.hello(connectionOf(call), client, call.grant?.name),
    "session/acquireControl": ({ sessionId, ttlMs = defaultTtlMs, takeOver = false, policy }, call) => {
      const by = clients.remember(connectionOf(call), call.grant?.name);
      return registry.get(sessionId).control.acquire({ by, ttlMs, takeOver, policy });
    },
    "session/releaseControl": ({ sessionId, to }, call) => {
      const by = clients.remember(connectionOf(call), call.grant?.name);
      const { control } = registry.get(sessionId);
      return control.release(by, to === undefined ? undefined : connected(clients, to));
    },
  };
}

function connected(clients: Clients, clientId: string): By {
  const client = clients.find(clientId);
  if (client !== undefined) return client;
  throw new WireError("client_not_found", `No client "${clientId}" is connected.`, { clientId });
}

/** The connection, which identifies the client. */
function connectionOf(call: Call): Peer {
  return peerOf(call, "A client is identified by its connection: use the WebSocket.");
}
