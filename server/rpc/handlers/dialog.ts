import type { dialogMethods } from "../../../protocol/dialog-methods.ts";
import { WireError } from "../../../protocol/errors.ts";
import type { DialogRegistry } from "../../dialogs/dialog-registry.ts";
import type { Registry } from "../../session/registry.ts";
import { type HandlersOf, peerOf } from "../call.ts";

const abstains = "Only a subscribed connection can abstain, and this one ends with its call: use the WebSocket.";

export function dialogHandlers(registry: Registry, dialogs: DialogRegistry): HandlersOf<typeof dialogMethods> {
  return {
    "dialog/list": (params, { grant }) => {
      if (params.sessionId !== undefined) registry.get(params.sessionId);
      const covers = grant?.limits;
      if (covers === undefined) return dialogs.page(params);
      return dialogs.page({
        ...params,
        // A session that is still being created is not listed yet.
        isListed: (sessionId) => {
          const session = registry.find(sessionId);
          return session !== undefined && covers(session.stored);
        },
      });
    },
    "dialog/respond": async ({ dialogId, answer, abstain }, call) => {
      if ((answer === undefined) === (abstain === undefined))
        throw new WireError("invalid_params", "Give either an answer or an abstention.");
      const resolution =
        answer === undefined
          ? dialogs.abstain(dialogId, peerOf(call, abstains).id)
          : dialogs.respond(dialogId, answer, call.by, call.effect);
      await dialogs.stored(dialogId);
      return { dialogId, ...(resolution === undefined ? {} : { resolution }) };
    },
  };
}
