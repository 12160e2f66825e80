import { describe, expect, it } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import { deliveryId, http, json, openWebSocket, startEdge, type TestEdge } from "../../helpers/edge.ts";
import { type Example, expectAnswer, further, specification } from "../../helpers/json-rpc-examples.ts";

/** Sends one text to an edge; resolves with the answer, or undefined without one. */
type Say = (edge: TestEdge, example: Example) => Promise<unknown>;

const transports: Readonly<Record<string, Say>> = {
  "the dispatcher alone": async ({ dispatcher }, { text }) =>
    through(await dispatcher.converse(undefined, undefined).receive(Buffer.from(text))),
  "a WebSocket over TCP": (edge, { text }) => overWebSocket(edge, "tcp", text),
  "a WebSocket over a Unix socket": (edge, { text }) => overWebSocket(edge, "unix", text),
  "HTTP over TCP": (edge, example) => overHttp(edge, "tcp", example),
  "HTTP over a Unix socket": (edge, example) => overHttp(edge, "unix", example),
};

describe.each(Object.entries(transports))("JSON-RPC 2.0 over %s", (_name, say) => {
  it.each(specification)("answers as the specification's examples do: $title", async (example) => {
    await using edge = await startEdge();
    expectAnswer(await say(edge, example), example);
  });

  it.each(further)("answers to the letter: $title", async (example) => {
    await using edge = await startEdge();
    expectAnswer(await say(edge, example), example);
  });
});

describe.each<Transport>(["tcp", "unix"])("a WebSocket over %s", (transport) => {
  it("is usable after invalid JSON, and cancels a call that waits", async () => {
    await using edge = await startEdge();
    await using webSocket = await openWebSocket(edge, transport);
    webSocket.raw.send("{");
    expect(await webSocket.next()).toMatchObject({ id: null, error: { code: -32700 } });
    const waiting = edge.nextWait();
    webSocket.send({ jsonrpc: "2.0", id: "w", method: "delivery/wait", params: { deliveryId } });
    await waiting;
    webSocket.send({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id: "w" } });
    expect(await webSocket.next()).toMatchObject({ id: "w", error: { code: -32034, data: { name: "cancelled" } } });
    expect(await webSocket.call("session/list", {}, "after")).toMatchObject({ id: "after", result: { sessions: [] } });
  });
});

it("a call that waits is cancelled by another of its batch, over HTTP too", async () => {
  await using edge = await startEdge();
  const batch = [
    { jsonrpc: "2.0", id: 1, method: "delivery/wait", params: { deliveryId } },
    { jsonrpc: "2.0", method: "$/cancelRequest", params: { id: 1 } },
  ];
  const answer = await http(edge, { method: "POST", path: "/v1/rpc", headers: json, body: JSON.stringify(batch) });
  expect(answer).toMatchObject({ status: 200, body: [{ id: 1, error: { data: { name: "cancelled" } } }] });
});

async function overHttp(edge: TestEdge, transport: Transport, example: Example): Promise<unknown> {
  const { text, answer, status = answer === undefined ? 204 : 200 } = example;
  const given = await http(edge, { transport, method: "POST", path: "/v1/rpc", headers: json, body: text });
  expect(given.status).toBe(status);
  if (given.status !== 204) return given.body;
  expect(given.text).toBe("");
  return undefined;
}

/** Two calls follow the text in sequence: an answer that does not come before the second one's never comes. */
async function overWebSocket(edge: TestEdge, transport: Transport, text: string): Promise<unknown> {
  await using webSocket = await openWebSocket(edge, transport);
  webSocket.raw.send(text);
  const heard: unknown[] = [];
  for (const mark of ["first mark", "second mark"]) {
    webSocket.send({ jsonrpc: "2.0", id: mark, method: "daemon/info" });
    for (let message = await webSocket.next(); message.id !== mark; message = await webSocket.next())
      heard.push(message);
  }
  expect(heard.length).toBeLessThan(2);
  return heard[0];
}

function through(answer: unknown): unknown {
  return answer === undefined ? undefined : JSON.parse(JSON.stringify(answer));
}
