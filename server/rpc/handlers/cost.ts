import type { costMethods } from "../../../protocol/cost-methods.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";

export function costHandlers(registry: Registry): HandlersOf<typeof costMethods> {
  const of = (sessionId: string) => registry.get(sessionId).costs;
  return {
    "cost/report": ({ sessionId }, { signal }) => of(sessionId).report(signal),
    "cost/checkpoint": (params, { signal }) => of(params.sessionId).order("cost/checkpoint", params, signal),
    "cost/startPhase": (params, { signal }) => of(params.sessionId).order("cost/startPhase", params, signal),
    "cost/endPhase": (params, { signal }) => of(params.sessionId).order("cost/endPhase", params, signal),
    "cost/setBudget": (params, { signal }) => of(params.sessionId).order("cost/setBudget", params, signal),
  };
}
