import type { optimisationMethods } from "../../../protocol/optimisation-methods.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";

export function optimisationHandlers(registry: Registry): HandlersOf<typeof optimisationMethods> {
  const partsOf = (sessionId: string) => registry.get(sessionId).parts;
  return {
    "optimisation/inspect": ({ sessionId }, { signal }) => partsOf(sessionId).ask("optimisation/inspect", {}, signal),
    "optimisation/configure": async ({ sessionId, optimisation }, { signal }) => {
      registry.get(sessionId).costs.requirePrices(optimisation);
      return await partsOf(sessionId).configuring.configure(optimisation, signal);
    },
    "cache/report": ({ sessionId }, { signal }) => partsOf(sessionId).ask("cache/report", {}, signal),
  };
}
