import type { MethodName, Params, Result } from "../../../protocol/methods.ts";
import type { pruningMethods } from "../../../protocol/pruning-methods.ts";
import type { Registry } from "../../session/registry.ts";
import type { HandlersOf } from "../call.ts";

interface Given {
  readonly sessionId: string;
  readonly idempotencyKey?: string;
  readonly cached?: boolean;
}
type PruningName = keyof typeof pruningMethods & MethodName;

export function pruningHandlers(registry: Registry): HandlersOf<typeof pruningMethods> {
  /** The part inside pi answers. It does not get the params that only the daemon needs. */
  const ask = async <M extends PruningName>(about: M, params: Params<M>, signal: AbortSignal): Promise<Result<M>> => {
    const { sessionId, idempotencyKey: _key, cached: _cached, ...rest } = params as Given;
    return await registry.get(sessionId).parts.ask(about, rest, signal);
  };
  return {
    "pruning/inspect": (params, { signal }) => ask("pruning/inspect", params, signal),
    "pruning/stats": (params, { signal }) => ask("pruning/stats", params, signal),
    "pruning/export": (params, { signal }) => ask("pruning/export", params, signal),
    "pruning/sweep": (params, { signal }) => ask("pruning/sweep", params, signal),
    "pruning/setMode": (params, { signal }) => ask("pruning/setMode", params, signal),
    "pruning/compress": (params, { signal }) => ask("pruning/compress", params, signal),
    "pruning/decompress": (params, { signal }) => ask("pruning/decompress", params, signal),
    "pruning/recompress": (params, { signal }) => ask("pruning/recompress", params, signal),
    "pruning/configure": ({ sessionId, pruning = {}, reload = false }, { signal }) =>
      registry.get(sessionId).parts.configuring.prune(pruning, reload, signal),
  };
}
