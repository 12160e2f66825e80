import { describe, expect, test } from "vitest";
import type { WireError } from "../../../protocol/errors.ts";
import { Clients } from "../../../server/rpc/clients.ts";

function peer(id: string) {
  const controller = new AbortController();
  return { id, gone: controller.signal, send: () => {}, leave: () => controller.abort() };
}

function world(limits = { maxClientsPerToken: 3, maxGoneClients: 4 }) {
  const told: string[] = [];
  const clients = new Clients({
    limits,
    onLeft: (id) => told.push(`left ${id}`),
    onConnected: (id) => told.push(`returned ${id}`),
  });
  return { clients, told };
}

describe("the clients of a daemon", () => {
  test("are known by their connection until they identify themselves", () => {
    const { clients } = world();
    const one = peer("connection-1");
    expect(clients.by(one)).toEqual({ clientId: "connection-1" });
    expect(clients.hello(one, { id: "client-ada", name: "Ada" })).toEqual({ clientId: "client-ada", name: "Ada" });
    expect(clients.by(one)).toEqual({ clientId: "client-ada", name: "Ada" });
    expect(clients.hello(one, { name: "Ada Lovelace" })).toEqual({ clientId: "client-ada", name: "Ada Lovelace" });
  });

  test("cannot change their identity on the same connection", () => {
    const { clients } = world();
    const one = peer("connection-1");
    clients.hello(one, { id: "client-ada" });
    const attempt = () => clients.hello(one, { id: "client-bob" });
    expect(attempt).toThrow(expect.objectContaining({ kind: "conflict" } satisfies Partial<WireError>));
  });

  test("cannot become another connection that has not identified itself", () => {
    const { clients } = world();
    const [one, two] = [peer("connection-1"), peer("connection-2")] as const;
    clients.by(one);
    const attempt = () => clients.hello(two, { id: "connection-1" });
    expect(attempt).toThrow(expect.objectContaining({ kind: "conflict" } satisfies Partial<WireError>));
    expect(clients.by(two)).toEqual({ clientId: "connection-2" });
    expect(clients.hello(one, {})).toEqual({ clientId: "connection-1" });
    one.leave();
    expect(clients.hello(two, { id: "connection-1" })).toEqual({ clientId: "connection-1" });
  });

  test("have left when the last of their connections has gone, and are back with the next", () => {
    const { clients, told } = world();
    const [one, two, three] = [peer("connection-1"), peer("connection-2"), peer("connection-3")] as const;
    clients.hello(one, { id: "client-ada" });
    clients.hello(two, { id: "client-ada" });
    one.leave();
    expect(clients.find("client-ada")).toEqual({ clientId: "client-ada" });
    two.leave();
    expect(clients.find("client-ada")).toBeUndefined();
    clients.hello(three, { id: "client-ada" });
    expect(told).toEqual(["returned client-ada", "returned client-ada", "left client-ada", "returned client-ada"]);
  });

  test("that left before their first call are unknown", () => {
    const { clients, told } = world();
    const one = peer("connection-1");
    one.leave();
    clients.hello(one, { id: "client-ada" });
    expect([clients.find("client-ada"), clients.by(one), told]).toEqual([undefined, { clientId: "connection-1" }, []]);
  });

  /** Connects and disconnects under an id. Returns the error's name. */
  function visit(clients: Clients, id: string, token: string, stays = false): string {
    const own = peer(`connection-of-${id}-${token}-${Math.random()}`);
    try {
      clients.hello(own, { id }, token);
      if (!stays) own.leave();
      return "known";
    } catch (error) {
      return (error as WireError).kind;
    }
  }

  test("keep their id as long as they are connected, however many others come and go", () => {
    const { clients } = world({ maxClientsPerToken: 20_000, maxGoneClients: 10_000 });
    visit(clients, "client-ada", "main", true);
    for (let i = 0; i < 10_001; i += 1) visit(clients, `client-${i}`, "other");
    expect(visit(clients, "client-ada", "other")).toBe("conflict");
    expect(visit(clients, "client-ada", "main")).toBe("known");
  });

  test("are forgotten after they have left, the longest absent of a token first, and never another token's instead", () => {
    const { clients } = world();
    visit(clients, "client-ada", "main");
    for (const id of ["a", "b", "c", "d"]) visit(clients, id, "other");
    expect(["client-ada", "b"].map((id) => visit(clients, id, "third"))).toEqual(["conflict", "conflict"]);
    expect(visit(clients, "a", "third")).toBe("known");
    // One above the total: the token with most of them forgets its oldest.
    expect(["client-ada", "c"].map((id) => visit(clients, id, "fourth"))).toEqual(["conflict", "conflict"]);
    expect(visit(clients, "b", "fourth")).toBe("known");
  });

  test("are overloaded if too many of their token are connected, and others are not", () => {
    const { clients } = world();
    for (const id of ["a", "b", "c"]) visit(clients, id, "main", true);
    expect(visit(clients, "d", "main")).toBe("overloaded");
    expect(visit(clients, "a", "main")).toBe("known");
    expect(visit(clients, "d", "other")).toBe("known");
  });
});
