import { describe, expect, test } from "vitest";
import { WireError } from "../../../protocol/errors.ts";
import { isReading, type MethodRow } from "../../../protocol/method-row.ts";
import { type MethodName, methods } from "../../../protocol/methods.ts";
import type { Call, Handlers } from "../../../server/rpc/call.ts";
import { governed, isGoverned, sessionParams } from "../../../server/rpc/governance.ts";

const rows = Object.entries(methods) as [MethodName, MethodRow][];
const paramsOf = ({ params }: MethodRow): readonly string[] =>
  Object.keys((params as { readonly properties?: object }).properties ?? {});

const ids = { sessionId: "s", deliveryId: "d", promptId: "p", dialogId: "q" };
const call: Call = { signal: new AbortController().signal };

const found = (): string => "the session";

/** All handlers, which answer with who called, and a session that nobody here may change. */
function exclusive(): Handlers {
  const handlers = Object.fromEntries(rows.map(([name]) => [name, (_params: object, { by }: Call) => by?.clientId]));
  return governed(handlers as unknown as Handlers, {
    by: () => ({ clientId: "client-1" }),
    check: (sessionId) => {
      expect(sessionId).toBe("the session");
      throw new WireError("not_controller", "Another client controls the session.");
    },
    sessionOf: { sessionId: found, deliveryId: found, dialogId: found, promptId: found },
  });
}

function outcome(name: MethodName, params: object): unknown {
  try {
    return exclusive()[name](params as never, call);
  } catch (error) {
    return (error as WireError).kind;
  }
}

describe("in a session that another client controls alone", () => {
  test("every method of the table that changes something is refused, and every other is not", () => {
    const command = { command: { type: "set_session_name", name: "x" } };
    for (const [name, row] of rows) {
      const named = Object.fromEntries(Object.entries(ids).filter(([id]) => paramsOf(row).includes(id)));
      const refused = outcome(name, { ...named, ...command });
      expect([name, refused]).toEqual([name, isGoverned(name) ? "not_controller" : "client-1"]);
    }
  });

  test("only what is about no session that is there, or about control itself, is not governed, of all that changes something", () => {
    const free = rows.filter(([name, row]) => !isReading(row) && !isGoverned(name));
    expect(free.map(([name]) => name)).toEqual([
      "session/create",
      "session/open",
      "session/acquireControl",
      "session/releaseControl",
      "token/create",
      "token/rotate",
      "token/revoke",
    ]);
  });

  test("every governed method says which session it is about, by a param that is looked at", () => {
    const silent = rows.filter(([name, row]) => {
      const required = (row.params as { readonly required?: readonly string[] }).required ?? [];
      return isGoverned(name) && !sessionParams.some((param) => required.includes(param));
    });
    expect(silent.map(([name]) => name)).toEqual([]);
  });

  test("pi's own commands that only read are not refused", () => {
    expect(outcome("session/command", { ...ids, command: { type: "get_messages" } })).toBe("client-1");
    expect(outcome("session/command", { ...ids, command: { type: "bash" } })).toBe("not_controller");
  });
});
