import type { dialogMethods } from "../../../protocol/dialog-methods.ts";
import type { DialogDesk } from "../../session/dialog-desk.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";

export function dialogHandlers(registry: Registry, desk: DialogDesk): HandlersOf<typeof dialogMethods> {
  return {
    "dialog/list": (params) => {
      if (params.sessionId !== undefined) registry.get(params.sessionId);
      return desk.page(params);
    },
    "dialog/respond": ({ dialogId, answer }, { by }) => ({
      dialogId,
      resolution: desk.respond(dialogId, answer, by),
    }),
  };
}
