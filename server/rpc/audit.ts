import type { Logger } from "pino";
import type { By } from "../../protocol/client-identity.ts";
import { WireError } from "../../protocol/errors.ts";
import { isReading, type MethodRow } from "../../protocol/method-row.ts";
import { type MethodName, methods } from "../../protocol/methods.ts";
import { Tally } from "../lib/tally.ts";
import type { Call, Handlers, Peer } from "./call.ts";
import { onlyReads, type SessionParam, sessionParams } from "./governance.ts";
import { paramNeeds } from "./param-needs.ts";

export interface AuditOptions {
  /** Gets the calls that were made. */
  readonly calls: Logger;
  /** Gets those that were not, or failed. */
  readonly log: Logger;
  /** Who is behind a connection. */
  readonly by: (peer: Peer | undefined) => By | undefined;
  /** To which session something belongs that a param names. */
  readonly sessionOf: Readonly<Record<SessionParam, (id: string) => string | undefined>>;
}

type Given = Readonly<Record<string, unknown>>;
type AnyHandler = (params: Given, call: Call) => unknown;

/**
 * Logs each call that changes something, or whose params need more than to look on, when it has ended: who, with which
 * token, what, in which session, with what outcome. Nothing of what was said: neither params nor results, but for the ids
 * in them. What costs who makes it little pushes nothing out: of a token and a method twenty calls a second have a line, of a
 * token and an outcome other than success one, and others are counted.
 */
export function audited(handlers: Handlers, options: AuditOptions): Handlers {
  const { log, calls } = options;
  const made = new Tally<Made>({
    everyMs: 1_000,
    atOnce: maxLinesASecond,
    first: (line) => calls.info(line, "call"),
    further: (line, count) => calls.info({ ...line, count }, "further calls"),
  });
  const failed = new Tally<Failed>({
    everyMs: 1_000,
    first: (line) => log.info(line, "call"),
    further: ({ tokenName, outcome }, count) => log.info({ tokenName, outcome, count }, "further calls"),
  });
  return Object.fromEntries(
    Object.entries(handlers).map(([name, handler]) => {
      const method = name as MethodName;
      const { needs } = methods[method] as MethodRow;
      const mayBeAudited = isChanging(method) || needs !== undefined;
      return [method, mayBeAudited ? logging(method, handler as never, options, { made, failed }) : handler];
    }),
  ) as unknown as Handlers;
}

/** Pushes come by the thousand, and say themselves who sent them. */
const maxLinesASecond = 20;

interface Made {
  readonly tokenName: string | undefined;
  readonly method: MethodName;
  readonly outcome: "done";
}

interface Failed {
  readonly tokenName: string | undefined;
  readonly outcome: string;
}

function isChanging(method: MethodName): boolean {
  return !isReading(methods[method] as MethodRow);
}

function logging(
  method: MethodName,
  handler: AnyHandler,
  { by, sessionOf }: AuditOptions,
  { made, failed }: { readonly made: Tally<Made>; readonly failed: Tally<Failed> },
): AnyHandler {
  const changes = isChanging(method);
  return async (params, call) => {
    const isQuiet = changes ? onlyReads(method, params) : paramNeeds(method, params).length === 0;
    if (isQuiet) return await handler(params, call);
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
    try {
      const result = await handler(params, call);
      made.add(`${method} ${who.tokenName}`, { ...who, ...before, ...idsOf(result, sessionOf), outcome: "done" });
      return result;
    } catch (error) {
      const outcome = error instanceof WireError ? error.kind : call.signal.aborted ? "cancelled" : "internal_error";
      failed.add(`${outcome} ${who.tokenName}`, { ...who, ...before, outcome });
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
