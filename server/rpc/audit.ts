import type { Logger } from "pino";
import { WireError } from "../../protocol/errors.ts";
import { idParams, isReading } from "../../protocol/method-row.ts";
import type { MethodName } from "../../protocol/methods.ts";
import { Tally } from "../lib/tally.ts";
import type { Policy } from "./call.ts";
import type { SessionOf } from "./governance.ts";
import { commandType, paramNeeds, paramOf, sendsQuery } from "./params.ts";

export interface AuditOptions {
  /** Gets the calls that succeeded. */
  readonly calls: Logger;
  /** Gets the calls that were refused or failed. */
  readonly log: Logger;
  readonly sessionOf: SessionOf;
}

/**
 * Logs each call that changes something, or whose params need more than observing, when it has ended: the client, the
 * token, the method, the session and the outcome. Params and results are not logged, except the ids in them. Cheap calls
 * cannot displace other lines: each second has at most 20 lines for a token and a method, one line for a token and an
 * outcome other than success, and the number of further calls.
 */
export function audit({ log, calls, sessionOf }: AuditOptions): Policy {
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
  return ({ name: method, row }, next) => {
    const changes = !isReading(row);
    if (!changes && row.needs === undefined) return next;
    return async (params, call) => {
      const isQuiet = changes ? sendsQuery(row, params) : paramNeeds(row, params).length === 0;
      if (isQuiet) return await next(params, call);
      const { clientId, name: client } = call.by ?? {};
      const command = commandType(row, params);
      const who = {
        connectionId: call.peer?.id,
        clientId,
        client,
        tokenName: call.grant?.name,
        method,
        // The schema allows only a short word.
        ...(command === undefined ? {} : { command }),
      };
      const before = idsIn(params, sessionOf);
      try {
        const result = await next(params, call);
        made.add(`${method} ${who.tokenName}`, { ...who, ...before, ...idsIn(result, sessionOf), outcome: "done" });
        return result;
      } catch (error) {
        const outcome = error instanceof WireError ? error.kind : call.signal.aborted ? "cancelled" : "internal_error";
        failed.add(`${outcome} ${who.tokenName}`, { ...who, ...before, outcome });
        throw error;
      }
    };
  };
}

/** A client can send thousands of pushes, and each delivery records its client. */
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

/** The ids in params or in a result, with the session that they belong to. */
function idsIn(value: unknown, sessionOf: SessionOf): Record<string, string> {
  const ids: Record<string, string> = {};
  if (typeof value !== "object" || value === null) return ids;
  for (const { kind, param } of idParams) {
    const id = paramOf(value, param);
    if (typeof id !== "string") continue;
    ids[param] = id;
    const sessionId = ids["sessionId"] ?? sessionOf[kind](id);
    if (sessionId !== undefined) ids["sessionId"] = sessionId;
  }
  return ids;
}
