import { WireError } from "../../../protocol/errors.ts";
import { resolveOptimisation } from "../../../protocol/optimisation/resolve.ts";
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
    "cache/report": ({ sessionId }, { signal }) => {
      const { cache } = resolveOptimisation(registry.get(sessionId).stored.options.optimisation ?? {});
      if (cache.enabled && cache.audit) return partsOf(sessionId).ask("cache/report", {}, signal);
      // No pi is started to say this.
      throw new WireError("unsupported_by_pi", 'The part "cache" is off in this session.');
    },
  };
}
