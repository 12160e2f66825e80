import type { modelMethods } from "../../../protocol/model-methods.ts";
import { unlessAborted } from "../../lib/deadline.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";

export function modelHandlers(registry: Registry): HandlersOf<typeof modelMethods> {
  return {
    "model/list": async ({ sessionId, refresh }, { signal }) =>
      sessionId === undefined
        ? await unlessAborted(registry.models(refresh === true), signal)
        : await registry.modelsOf(sessionId, signal),
  };
}
