import { once } from "node:events";
import { describe, expect, it } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import { type Frame, unnumberedFrame } from "../../../server/frames/frame.ts";
import type { Call } from "../../../server/rpc/call.ts";
import { deliveryId, openWebSocket, startEdge } from "../../helpers/edge.ts";

const sessionId = "01920000-0000-7000-8000-000000000002";

function frameOf(value: unknown): Frame {
  return unnumberedFrame(Buffer.from(JSON.stringify(value)));
}

describe.each<Transport>(["tcp", "unix"])("a connection over %s", (transport) => {
  it("gets answers and notifications in the order in which they were made, however many per turn", async () => {
    const subscribe = (_params: unknown, { peer }: Call) => {
      for (let n = 0; n < 1_000; n += 1) peer?.send(frameOf({ n }));
      return { cursor: 0 };
    };
    await using edge = await startEdge({ handlers: { "session/subscribe": subscribe } });
    await using webSocket = await openWebSocket(edge, transport);
    webSocket.send({ jsonrpc: "2.0", id: "first", method: "session/list" });
    webSocket.send({ jsonrpc: "2.0", id: "second", method: "session/subscribe", params: { sessionId } });
    const heard: unknown[] = [];
    while (heard.at(-1) !== "second") {
      const message = await webSocket.next();
      heard.push(message.id ?? message.n);
    }
    expect(heard.filter((one) => one !== "first")).toEqual([...Array(1_000).keys(), "second"]);
  });

  it("gets the exact bytes of a frame that is shared", async () => {
    const text = `{"method":"session/event","params":{"text":"${"ÿ€😀\\u0000\u2028".repeat(1_000)}"}}`;
    const shared = Buffer.from(text);
    const subscribe = (_params: unknown, { peer }: Call) => {
      peer?.send(unnumberedFrame(shared));
      return { cursor: 0 };
    };
    await using edge = await startEdge({ handlers: { "session/subscribe": subscribe } });
    await using one = await openWebSocket(edge, transport);
    await using other = await openWebSocket(edge, transport);
    for (const webSocket of [one, other]) {
      webSocket.send({ jsonrpc: "2.0", id: 1, method: "session/subscribe", params: { sessionId } });
      const [data, isBinary] = await once(webSocket.raw, "message");
      expect([data.toString(), isBinary]).toEqual([text, false]);
    }
    expect(shared.toString()).toBe(text);
  });

  it("that ends cancels its calls, and later messages to it are silently dropped", async () => {
    await using edge = await startEdge();
    await using bystander = await openWebSocket(edge, transport);
    const webSocket = await openWebSocket(edge, transport);
    const wait = edge.nextWait();
    webSocket.send({ jsonrpc: "2.0", id: 1, method: "delivery/wait", params: { deliveryId } });
    const { signal, peer } = await wait;
    webSocket.raw.terminate();
    if (!signal.aborted) await once(signal, "abort");
    expect(signal.reason).toMatchObject({ kind: "cancelled" });
    expect(peer?.gone.aborted).toBe(true);
    peer?.send(frameOf({}));
    expect((await bystander.call("session/list")).result).toBeDefined();
    expect(edge.logged.filter((line) => JSON.parse(line).level >= 40)).toEqual([]);
    expect(edge.edge.load.connections).toBe(1);
  });

  it("has a unique id", async () => {
    const ids = new Set<string | undefined>();
    const subscribe = (_params: unknown, { peer }: Call) => {
      ids.add(peer?.id);
      return { cursor: 0 };
    };
    await using edge = await startEdge({ handlers: { "session/subscribe": subscribe } });
    for (let n = 0; n < 3; n += 1) {
      await using webSocket = await openWebSocket(edge, transport);
      await webSocket.call("session/subscribe", { sessionId });
      await webSocket.call("session/subscribe", { sessionId });
    }
    expect(ids.size).toBe(3);
  });
});
