import { describe, expect, test } from "vitest";
import type { WireError } from "../../../protocol/errors.ts";
import { Clients } from "../../../server/rpc/clients.ts";

function peer(id: string) {
  const controller = new AbortController();
  return { id, gone: controller.signal, send: () => {}, leave: () => controller.abort() };
}

function world() {
  const told: string[] = [];
  const clients = new Clients({
    onLeft: (id) => told.push(`left ${id}`),
    onReturned: (id) => told.push(`returned ${id}`),
  });
  return { clients, told };
}

describe("the clients of a daemon", () => {
  test("are known by their connection until they say who they are, and over HTTP not at all", () => {
    const { clients } = world();
    const one = peer("connection-1");
    expect(clients.by(one)).toEqual({ clientId: "connection-1" });
    expect(clients.by(undefined)).toBeUndefined();
    expect(clients.hello(one, { id: "client-ada", name: "Ada" })).toEqual({ clientId: "client-ada", name: "Ada" });
    expect(clients.by(one)).toEqual({ clientId: "client-ada", name: "Ada" });
    expect(clients.hello(one, { name: "Ada Lovelace" })).toEqual({ clientId: "client-ada", name: "Ada Lovelace" });
  });

  test("cannot become others on the same connection", () => {
    const { clients } = world();
    const one = peer("connection-1");
    clients.hello(one, { id: "client-ada" });
    const attempt = () => clients.hello(one, { id: "client-bob" });
    expect(attempt).toThrow(expect.objectContaining({ kind: "conflict" } satisfies Partial<WireError>));
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

  test("that have gone before they were heard are nobody", () => {
    const { clients, told } = world();
    const one = peer("connection-1");
    one.leave();
    clients.hello(one, { id: "client-ada" });
    expect([clients.find("client-ada"), clients.by(one), told]).toEqual([undefined, { clientId: "connection-1" }, []]);
  });
});
