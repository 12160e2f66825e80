import { once } from "node:events";
import { describe, expect, it, vi } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import { http, json, startEdge, type TestEdge, token } from "../../helpers/edge.ts";
import { patience } from "../../helpers/patience.ts";
import { rawSocket } from "./raw-socket.ts";

const listing = '{"jsonrpc":"2.0","id":1,"method":"session/list"}';
/** Far longer than a head takes to arrive on a busy machine, so that a valid request gets its answer. */
const limits = { headersTimeoutMs: 500, requestTimeoutMs: 1_000 };

const head = (edge: TestEdge, more: string): string =>
  `POST /v1/rpc HTTP/1.1\r\nhost: localhost:${edge.port}\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\n${more}\r\n\r\n`;

describe.each<Transport>(["tcp", "unix"])("slow clients over %s", (transport) => {
  it("that send their head a byte at a time are still ended with 408", async () => {
    await using edge = await startEdge({ limits });
    using socket = rawSocket(edge, transport);
    const text = head(edge, `x: ${"a".repeat(10_000)}`);
    let at = 0;
    const drip = setInterval(() => {
      socket.socket.write(text[at] ?? "");
      at += 1;
    }, 5);
    expect(await socket.ended).toMatch(/^HTTP\/1\.1 408 /);
    clearInterval(drip);
  });

  it("may wait for their answer longer than requests may take to arrive", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    await using edge = await startEdge({ limits, handlers: { "session/list": () => promise } });
    const asked = http(edge, { transport, method: "POST", path: "/v1/rpc", headers: json, body: listing });
    // Two that are too slow mark the time.
    for (const text of ["GET", `${head(edge, "content-length: 50")}{`]) {
      using slow = rawSocket(edge, transport);
      slow.socket.write(text);
      expect(await slow.ended).toMatch(/^HTTP\/1\.1 408 /);
    }
    resolve({ sessions: [] });
    expect((await asked).status).toBe(200);
  });

  it("that do not read their answer are ended", async () => {
    const handler = vi.fn(() => ({ sessions: ["x".repeat(16 * 1024 * 1024)] }));
    await using edge = await startEdge({ limits, handlers: { "session/list": handler } });
    using socket = rawSocket(edge, transport);
    socket.socket.pause();
    socket.socket.write(`${head(edge, `content-length: ${listing.length}`)}${listing}`);
    await vi.waitUntil(() => handler.mock.calls.length === 1, patience);
    // Closing waits for an answer in progress; far longer than this test may take.
    await edge.edge.close({ drainMs: 1_000_000 });
  });

  it("get the complete answer that was written before the edge closes", async () => {
    const bytes = 16 * 1024 * 1024;
    const handler = vi.fn(() => ({ sessions: ["x".repeat(bytes)] }));
    await using edge = await startEdge({ handlers: { "session/list": handler }, limits: { closeTimeoutMs: 60_000 } });
    using socket = rawSocket(edge, transport);
    socket.socket.write(`${head(edge, `content-length: ${listing.length}`)}${listing}`);
    await socket.until((heard) => heard !== "");
    socket.socket.pause();
    const closed = edge.edge.close();
    expect(await isRefused(edge, transport)).toBe(true);
    socket.socket.resume();
    const [, body = ""] = (await socket.ended).split("\r\n\r\n");
    expect(body.length).toBeGreaterThan(bytes);
    expect(body.endsWith('"]}}')).toBe(true);
    await closed;
  });

  it("that have sent nothing do not delay the edge's end, while a request in progress does", async () => {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const handler = vi.fn(() => promise);
    await using edge = await startEdge({ handlers: { "session/list": handler }, limits: { closeTimeoutMs: 60_000 } });
    using silent = rawSocket(edge, transport);
    await once(silent.socket, "connect");
    const asked = http(edge, { transport, method: "POST", path: "/v1/rpc", headers: json, body: listing });
    await vi.waitUntil(() => handler.mock.calls.length === 1, patience);
    const closed = edge.edge.close();
    expect(await silent.ended).toBe("");
    resolve({ sessions: [] });
    expect((await asked).status).toBe(200);
    await closed;
  });
});

function isRefused(edge: TestEdge, transport: Transport): Promise<boolean> {
  return http(edge, { transport }).then(
    () => false,
    () => true,
  );
}
