import { pino } from "pino";
import { createValidator } from "../../protocol/validation.ts";
import { limits } from "../../server/configuration/limits.ts";
import type { Handlers, Peer } from "../../server/rpc/call.ts";
import { Clients } from "../../server/rpc/clients.ts";
import { type Conversation, createDispatcher } from "../../server/rpc/dispatcher.ts";
import type { Grant } from "../../server/rpc/grant.ts";
import { commandHandlers } from "../../server/rpc/handlers/command.ts";
import { deliveryHandlers } from "../../server/rpc/handlers/delivery.ts";
import { dialogHandlers } from "../../server/rpc/handlers/dialog.ts";
import { promptHandlers } from "../../server/rpc/handlers/prompt.ts";
import { sessionHandlers } from "../../server/rpc/handlers/session.ts";
import { sessionFileHandlers } from "../../server/rpc/handlers/session-file.ts";
import { policies } from "../../server/rpc/policies.ts";
import { Database } from "../../server/store/database.ts";
import { IdempotencyStore } from "../../server/store/idempotency.ts";
import type { Core } from "./core.ts";
import { fakeCore } from "./edge.ts";
import { mainGrant } from "./tokens.ts";

/** Calls to a core's sessions, deliveries and dialogs through every policy; each connection has its own client. */
export function dispatcherOf({ registry, tracker, dialogs }: Core): (clientId?: string, grant?: Grant) => Conversation {
  const validator = createValidator();
  const log = pino({ level: "silent" });
  const handlers: Handlers = {
    ...fakeCore().handlers,
    ...sessionHandlers(registry, tracker),
    ...sessionFileHandlers(registry, tracker),
    ...promptHandlers(registry, tracker),
    ...commandHandlers(registry, tracker, validator),
    ...deliveryHandlers(registry, tracker),
    ...dialogHandlers(registry, dialogs),
  };
  const clients = new Clients({ limits: limits.clients, onLeft: () => {}, onConnected: () => {} });
  const keys = new IdempotencyStore(new Database(":memory:", () => {}));
  const dispatcher = createDispatcher({
    handlers,
    policies: policies({ clients, registry, tracker, dialogs, keys, limits, calls: log, log }),
    validator,
    log,
  });
  return (clientId, grant = mainGrant) => {
    if (clientId === undefined) return dispatcher.converse(undefined, grant);
    const peer: Peer = { id: `connection of ${clientId}`, gone: new AbortController().signal, send: () => {} };
    clients.hello(peer, { id: clientId });
    return dispatcher.converse(peer, grant);
  };
}
