import type { contextMethods } from "../../../protocol/context-methods.ts";
import type { ContextCaller } from "../../context/read-path.ts";
import type { Registry } from "../../session/registry.ts";
import type { Call, HandlersOf } from "../call.ts";

export function contextHandlers(registry: Registry): HandlersOf<typeof contextMethods> {
  return {
    "context/inspect": (params, call) => registry.contexts.inspect(params, callerOf(call)),
    "context/export": (params, call) => registry.contexts.export(params, callerOf(call)),
  };
}

/** What a call may read. */
export function callerOf({ grant, isLocal, signal }: Call): ContextCaller {
  const isAdmin = grant?.allows("admin") === true && !grant.isLimited;
  return {
    mayReadAny: isAdmin && isLocal === true,
    mayObserve: grant?.allows("observe") === true,
    covers: grant?.limits,
    signal,
  };
}
