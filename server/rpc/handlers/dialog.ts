import type { dialogMethods } from "../../../protocol/dialog-methods.ts";
import type { DialogRegistry } from "../../dialogs/dialog-registry.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";

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
    "dialog/respond": async ({ dialogId, answer }, { by, effect }) => {
      const resolution = dialogs.respond(dialogId, answer, by, effect);
      await dialogs.stored(dialogId);
      return { dialogId, resolution };
    },
  };
}
