import { describe, expect, it } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import { isUsable, json, startEdge } from "../../helpers/edge.ts";
import { rawSocket } from "./raw-socket.ts";

/** Far longer than a head takes to arrive on a busy machine, so that a valid request gets its answer. */
const times = { headersTimeoutMs: 500, requestTimeoutMs: 1_000 };

describe.each<Transport>(["tcp", "unix"])("what is not HTTP over %s", (transport) => {
  it.each([
    ["noise", Buffer.from([0x00, 0xff, 0x13, 0x37, 0x0d, 0x0a, 0x0d, 0x0a])],
    ["TLS", Buffer.from("16030100a5010000a10303", "hex")],
    ["HTTP/2", Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")],
    ["a request line alone", Buffer.from("GET\r\n\r\n")],
    [
      "two lengths",
      Buffer.from("POST /v1/rpc HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"),
    ],
    [
      "a length and chunks",
      Buffer.from(
        "POST /v1/rpc HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
      ),
    ],
    ["a negative length", Buffer.from("POST /v1/rpc HTTP/1.1\r\nhost: localhost\r\ncontent-length: -1\r\n\r\n")],
  ])("is answered with 400 and closed: %s", async (_title, bytes) => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, transport);
    socket.socket.write(bytes);
    const answer = await socket.ended;
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('"name":"invalid_request"');
    expect(await isUsable(edge)).toBe(true);
  });

  it("is answered with 431 if there are too many headers", async () => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, transport);
    socket.socket.write(`GET /healthz HTTP/1.1\r\nhost: localhost\r\n${"x-a: b\r\n".repeat(5_000)}\r\n`);
    expect(await socket.ended).toMatch(/^HTTP\/1\.1 431 /);
    expect(await isUsable(edge)).toBe(true);
  });

  it.concurrent("is answered with 408 if the head never ends", async () => {
    await using edge = await startEdge({ limits: times });
    using socket = rawSocket(edge, transport);
    socket.socket.write("GET /healthz HTTP/1.1\r\nhost:");
    expect(await socket.ended).toMatch(/^HTTP\/1\.1 408 /);
    expect(await isUsable(edge)).toBe(true);
  });

  it.concurrent("is answered with 408 if the body never ends", async () => {
    await using edge = await startEdge({ limits: times });
    using socket = rawSocket(edge, transport);
    const head = Object.entries(json).map(([name, value]) => `${name}: ${value}`);
    socket.socket.write(
      `POST /v1/rpc HTTP/1.1\r\nhost: localhost:${edge.port}\r\n${head.join("\r\n")}\r\ncontent-length: 100\r\n\r\n{"js`,
    );
    expect(await socket.ended).toMatch(/^HTTP\/1\.1 408 /);
    expect(await isUsable(edge)).toBe(true);
  });

  it.concurrent("ends a connection that sends nothing at all", async () => {
    await using edge = await startEdge({ limits: times });
    using socket = rawSocket(edge, transport);
    expect(await socket.ended).toMatch(/^HTTP\/1\.1 408 /);
  });

  it("closes connections above the limit of sockets", async () => {
    await using edge = await startEdge({ limits: { maxSockets: 1 } });
    using first = rawSocket(edge, transport);
    first.socket.write(`GET /healthz HTTP/1.1\r\nhost: localhost:${edge.port}\r\n\r\n`);
    await first.until((text) => text.includes("ok"));
    using second = rawSocket(edge, transport);
    expect(await second.ended).toBe("");
  });
});
