import type { MethodName, Params, Result } from "../../client/browser.ts";
import type { Daemon } from "./daemon.ts";

/**
 * The methods that a view may call when it is opened. They change nothing and start no pi. Everything else happens by a
 * press.
 */
export const readingMethods = [
  "daemon/info",
  "daemon/ready",
  "daemon/log",
  "session/list",
  "dialog/list",
  "delivery/list",
  "delivery/get",
  "prompt/list",
  "prompt/get",
  "session/getQueue",
  "session/getCommands",
  "session/getThinkingLevels",
  "transcript/page",
  "transcript/entry",
  "transcript/outline",
  "transcript/search",
  "request/list",
  "cost/report",
  "cache/report",
  "optimisation/inspect",
  "pruning/inspect",
] as const satisfies readonly MethodName[];

type ReadingMethod = (typeof readingMethods)[number];

/** Asks for the models that are known. Without `cached`, the call would start a pi. */
export function readModels(daemon: Pick<Daemon, "call">, sessionId: string): Promise<Result<"model/list">> {
  return daemon.call("model/list", { sessionId, cached: true });
}

/** Calls one of them. */
export function read<M extends ReadingMethod>(
  daemon: Pick<Daemon, "call">,
  method: M,
  params: Params<M>,
  signal?: AbortSignal,
): Promise<Result<M>> {
  return daemon.call(method, params, signal === undefined ? {} : { signal });
}

/** Calls another method, because a person asked for it. */
export function act<M extends Exclude<MethodName, ReadingMethod>>(
  daemon: Pick<Daemon, "call">,
  method: M,
  params: Params<M>,
  signal?: AbortSignal,
): Promise<Result<M>> {
  return daemon.call(method, params, signal === undefined ? {} : { signal });
}
