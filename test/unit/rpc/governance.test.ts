import { describe, expect, test } from "vitest";
import { WireError } from "../../../protocol/errors.ts";
import { isReading, subjectsOf } from "../../../protocol/method-row.ts";
import type { MethodName } from "../../../protocol/methods.ts";
import type { Call } from "../../../server/rpc/call.ts";
import { attribution, control, isGoverned } from "../../../server/rpc/governance.ts";
import { paramNames, rows, sessionsBy, under } from "../../helpers/policies.ts";

const ids = { sessionId: "s", from: "s", deliveryId: "d", promptId: "p", dialogId: "q" };
const peer = { id: "connection-1", gone: new AbortController().signal, send: () => {} };
const call: Call = { peer, signal: new AbortController().signal };

/** The result of a call in a session that its client may not change: the client, or the kind of the error. */
function outcome(name: MethodName, params: object): unknown {
  const policy = control({
    check: (sessionId, by) => {
      expect([sessionId, by]).toEqual(["the session", { clientId: "client-1" }]);
      throw new WireError("not_controller", "Another client controls the session.");
    },
    sessionOf: sessionsBy(() => "the session"),
  });
  const attributed = attribution(() => ({ clientId: "client-1" }));
  const governed = under(policy, name, (_params, { by }) => by?.clientId);
  try {
    return under(attributed, name, governed)(params, call);
  } catch (error) {
    return (error as WireError).kind;
  }
}

describe("in a session that another client controls exclusively", () => {
  test("every method of the table that changes something is refused, and every other is not", () => {
    const command = { command: { type: "set_session_name", name: "x" } };
    for (const [name, row] of rows) {
      const named = Object.fromEntries(Object.entries(ids).filter(([id]) => paramNames(row).includes(id)));
      const refused = outcome(name, { ...named, ...command });
      expect([name, refused]).toEqual([name, isGoverned(row) ? "not_controller" : "client-1"]);
    }
  });

  test("the only changing methods that are not governed concern no existing session, or control itself", () => {
    const free = rows.filter(([, row]) => !isReading(row) && !isGoverned(row));
    expect(free.map(([name]) => name)).toEqual([
      "session/create",
      "session/acquireControl",
      "session/releaseControl",
      "token/create",
      "token/rotate",
      "token/revoke",
      "web/open",
      "web/close",
    ]);
  });

  test("every governed method names its session by a param that is checked, or may name one", () => {
    const silent = rows.filter(([, row]) => {
      const required = (row.params as { readonly required?: readonly string[] }).required ?? [];
      return isGoverned(row) && !subjectsOf(row).some(({ param }) => required.includes(param));
    });
    // The session whose pi goes on, if there is one.
    expect(silent.map(([name]) => name)).toEqual(["session/open"]);
  });

  test("pi's own commands that only read are not refused", () => {
    expect(outcome("session/command", { ...ids, command: { type: "get_messages" } })).toBe("client-1");
    expect(outcome("session/command", { ...ids, command: { type: "bash" } })).toBe("not_controller");
  });
});

test("every subject of a row is one of its params", () => {
  for (const [name, row] of rows) {
    const params = subjectsOf(row).map(({ param }) => param);
    expect([name, params.filter((param) => !paramNames(row).includes(param))]).toEqual([name, []]);
  }
});

test("a call over HTTP has no client, because it has no connection", () => {
  const attributed = attribution(() => ({ clientId: "client-1" }));
  const { signal } = call;
  expect(under(attributed, "session/list", (_params, { by }) => by ?? "none")({}, { signal })).toBe("none");
});
