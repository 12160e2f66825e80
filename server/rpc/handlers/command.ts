import type { commandMethods } from "../../../protocol/command-methods.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import { changesSession, checkCommand, sendCommand } from "../../session/client-command.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";

export function commandHandlers(registry: Registry, tracker: DeliveryTracker): HandlersOf<typeof commandMethods> {
  return {
    "session/command": async ({ sessionId, command, confirmShared }, { by }) => {
      checkCommand(command, confirmShared === true);
      const underWay = tracker.underWay(sessionId);
      const session = registry.get(sessionId);
      const send = () => sendCommand(session, command);
      const result = await (changesSession(command) ? session.attribution.acting(by, send) : send());
      return command.type === "compact" ? { ...result, deliveries: await tracker.effects(underWay) } : result;
    },
  };
}
