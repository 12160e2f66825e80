import type { Logger } from "pino";
import type { By } from "../../protocol/client-identity.ts";
import { WireError } from "../../protocol/errors.ts";
import { isReading, type MethodRow } from "../../protocol/method-row.ts";
import { type MethodName, methods } from "../../protocol/methods.ts";
import type { Call, Handlers, Peer } from "./call.ts";
import { onlyReads, type SessionParam, sessionParams } from "./governance.ts";

export interface AuditOptions {
  readonly log: Logger;
  /** Who is behind a connection. */
  readonly by: (peer: Peer | undefined) => By | undefined;
  /** To which session something belongs that a param names. */
  readonly sessionOf: Readonly<Record<SessionParam, (id: string) => string | undefined>>;
}

type Given = Readonly<Record<string, unknown>>;
type AnyHandler = (params: Given, call: Call) => unknown;

/**
 * Logs each call that changes something, when it has ended: who, with which token, what, in which session, with what
 * outcome. Nothing of what was said: neither params nor results, but for the ids in them.
 */
export function audited(handlers: Handlers, options: AuditOptions): Handlers {
  return Object.fromEntries(
    Object.entries(handlers).map(([name, handler]) => {
      const method = name as MethodName;
      const isAudited = !isReading(methods[method] as MethodRow);
      return [method, isAudited ? logging(method, handler as never, options) : handler];
    }),
  ) as unknown as Handlers;
}

function logging(method: MethodName, handler: AnyHandler, { log, by, sessionOf }: AuditOptions): AnyHandler {
  return async (params, call) => {
    if (onlyReads(method, params)) return await handler(params, call);
    const { clientId, name: client } = by(call.peer) ?? {};
    const who = {
      connectionId: call.peer?.id,
      clientId,
      client,
      tokenName: call.grant?.name,
      method,
      ...commandOf(method, params),
    };
    const before = idsOf(params, sessionOf);
    const told = (outcome: string, after: object = {}): void =>
      log.info({ ...who, ...before, ...after, outcome }, "call");
    try {
      const result = await handler(params, call);
      told("done", idsOf(result, sessionOf));
      return result;
    } catch (error) {
      told(error instanceof WireError ? error.kind : call.signal.aborted ? "cancelled" : "internal_error");
      throw error;
    }
  };
}

/** What a call or its result names of ours, and the session of it. */
function idsOf(value: unknown, sessionOf: AuditOptions["sessionOf"]): Record<string, string> {
  const ids: Record<string, string> = {};
  if (typeof value !== "object" || value === null) return ids;
  for (const name of sessionParams) {
    const id = Object.hasOwn(value, name) ? (value as Given)[name] : undefined;
    if (typeof id !== "string") continue;
    ids[name] = id;
    const sessionId = ids["sessionId"] ?? sessionOf[name](id);
    if (sessionId !== undefined) ids["sessionId"] = sessionId;
  }
  return ids;
}

/** Which of pi's commands; its schema lets it be a short word alone. */
function commandOf(method: MethodName, params: Given): { readonly command?: string } {
  return method === "session/command" ? { command: (params["command"] as { readonly type: string }).type } : {};
}
