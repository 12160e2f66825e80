import { WireError } from "../../../protocol/errors.ts";
import type { modelMethods } from "../../../protocol/model-methods.ts";
import { unlessAborted } from "../../lib/deadline.ts";
import type { Registry } from "../../session/registry.ts";
import { unknownAnswer } from "../asleep.ts";
import type { HandlersOf } from "../call.ts";

export function modelHandlers(registry: Registry): HandlersOf<typeof modelMethods> {
  return {
    "model/list": async ({ sessionId, refresh = false, cached = false }, { signal }) => {
      if (refresh && cached) {
        throw new WireError("invalid_params", "refresh asks pi, and cached does not: only one of them is possible.", {
          findings: [{ path: "/cached", message: "cannot be given with refresh" }],
        });
      }
      if (sessionId !== undefined) return await registry.modelsOf(sessionId, signal);
      if (!cached) return await unlessAborted(registry.models(refresh), signal);
      const known = registry.knownModels();
      if (known === undefined) throw unknownAnswer("not_known");
      return known;
    },
  };
}
