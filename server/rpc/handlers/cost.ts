import type { costMethods } from "../../../protocol/cost-methods.ts";
import type { MethodName, Params, Result } from "../../../protocol/methods.ts";
import type { Registry } from "../../session/registry.ts";
import type { Call, HandlersOf } from "../call.ts";

export function costHandlers(registry: Registry): HandlersOf<typeof costMethods> {
  const asked =
    <M extends keyof typeof costMethods & MethodName>(about: M) =>
    ({ sessionId, ...params }: Params<M> & { readonly sessionId: string }, { signal }: Call): Promise<Result<M>> =>
      registry.get(sessionId).parts.ask(about, params, signal);
  return {
    "cost/report": asked("cost/report"),
    "cost/checkpoint": asked("cost/checkpoint"),
    "cost/startPhase": asked("cost/startPhase"),
    "cost/endPhase": asked("cost/endPhase"),
    "cost/setBudget": asked("cost/setBudget"),
  };
}
