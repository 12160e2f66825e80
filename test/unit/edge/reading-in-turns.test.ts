import { once } from "node:events";
import { expect, it } from "vitest";
import { capabilities } from "../../../protocol/capability.ts";
import { callBytes } from "../../../server/rpc/dispatcher.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import { openWebSocket, startEdge, token } from "../../helpers/edge.ts";
import { mainGrant } from "../../helpers/tokens.ts";
import { frame, rawWebSocket } from "./raw-web-socket.ts";

const grants = new Map([
  ["guest", new Grant({ name: "guest", capabilities })],
  ["other", new Grant({ name: "other", capabilities })],
  [token, mainGrant],
]);
const tokens = { find: (text: string) => grants.get(text), onEnded: () => {} };
const bearer = (name: string) => ({ authorization: `Bearer ${name}` });

/** Occupies the thread for more than a slice. */
function work(): void {
  for (const until = performance.now() + 1; performance.now() < until; );
}

it("does not count messages that wait for their token's turn as calls: none is refused, and answers keep their order", async () => {
  await using edge = await startEdge({
    tokens,
    dispatcherLimits: { maxCallBytesPerToken: 3 * callBytes },
    handlers: {
      "session/list": () => {
        work();
        return { sessions: [] };
      },
    },
  });
  await using webSocket = await openWebSocket(edge, "tcp", bearer("guest"));
  const count = 200;
  for (let id = 1; id <= count; id += 1) webSocket.send({ jsonrpc: "2.0", id, method: "session/list" });
  for (let id = 1; id <= count; id += 1) expect(await webSocket.next()).toMatchObject({ id, result: {} });
});

it("answers another token's call, including the main token's, before an earlier flood over any connections", async () => {
  const floods = 20;
  const each = 50;
  let made = 0;
  await using edge = await startEdge({
    tokens,
    handlers: {
      "session/list": () => {
        made += 1;
        work();
        return { sessions: [] };
      },
    },
  });
  await using main = await openWebSocket(edge);
  await using other = await openWebSocket(edge, "tcp", bearer("other"));
  const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/list" });
  const texts = Buffer.concat(Array.from({ length: each }, () => frame(list)));
  await using flooding = new AsyncDisposableStack();
  for (let n = 0; n < floods; n += 1) {
    const webSocket = flooding.use(await openWebSocket(edge, "tcp", bearer("guest")));
    (webSocket.raw as unknown as { _socket: { write(bytes: Buffer): void } })._socket.write(texts);
  }
  await expect.poll(() => made).toBeGreaterThan(0);
  for (const webSocket of [main, other]) {
    expect(await webSocket.call("daemon/info")).toMatchObject({ result: { pid: 1 } });
  }
  expect(made).toBeLessThan((floods * each) / 2);
});

it("starts calls that a peer sent before it left, including those waiting for its token's turn", async () => {
  let made = 0;
  await using edge = await startEdge({
    handlers: {
      "session/list": () => {
        made += 1;
        work();
        return { sessions: [] };
      },
    },
  });
  const left = await rawWebSocket(edge);
  const notification = JSON.stringify({ jsonrpc: "2.0", method: "session/list" });
  // More than is read in one turn.
  left.socket.end(Buffer.concat(Array.from({ length: 400 }, () => frame(notification))));
  await once(left.socket, "close");
  await expect.poll(() => made).toBe(400);
  await expect.poll(() => edge.edge.load.connections).toBe(0);
});

it("reads a long message to its end while its token is busy", async () => {
  await using edge = await startEdge({
    handlers: {
      "session/list": () => {
        work();
        return { sessions: [] };
      },
    },
  });
  await using webSocket = await openWebSocket(edge);
  for (let id = 1; id <= 20; id += 1) webSocket.send({ jsonrpc: "2.0", id, method: "session/list" });
  const text = "x".repeat(1_000_000);
  webSocket.send({
    jsonrpc: "2.0",
    id: 21,
    method: "session/command",
    params: { sessionId: crypto.randomUUID(), command: { type: "get_state", text } },
  });
  for (let id = 1; id <= 20; id += 1) await webSocket.next();
  expect((await webSocket.next()).result.data.text).toBe(text);
});
