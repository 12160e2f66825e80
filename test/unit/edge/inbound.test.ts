import { describe, expect, it } from "vitest";
import { UnfinishedMessage } from "../../../server/edge/inbound.ts";
import { isUsable, openWebSocket, startEdge } from "../../helpers/edge.ts";
import type { RawSocket } from "./raw-socket.ts";
import { closeOf, frame, opcodes, rawWebSocket } from "./raw-web-socket.ts";

/** The bytes held of a message after each chunk, without the overhead of a fragment. */
function bytesAfter(...chunks: readonly Buffer[]): readonly number[] {
  const unfinished = new UnfinishedMessage();
  return chunks.map((chunk) => {
    unfinished.take(chunk);
    expect(unfinished.since === undefined).toBe(unfinished.bytes === 0);
    return unfinished.bytes;
  });
}

describe("the held part of an incomplete message", () => {
  it.each([0, 1, 125, 126, 65_535, 65_536])("is nothing after one of %i bytes, however it is cut", (length) => {
    const bytes = Buffer.concat([frame("x".repeat(length)), frame("y"), frame("", { opcode: opcodes.ping })]);
    expect(bytesAfter(bytes)).toEqual([0]);
    const cuts = [1, 2, 5, 6, 9, 13, 14, bytes.length - 12, bytes.length - 3].filter(
      (at) => at < bytes.length && at > 0,
    );
    for (const at of cuts) expect(bytesAfter(bytes.subarray(0, at), bytes.subarray(at)).at(-1)).toBe(0);
    const unfinished = new UnfinishedMessage();
    for (const byte of bytes) unfinished.take(Buffer.of(byte));
    expect(unfinished.bytes).toBe(0);
  });

  it("is its fragments and the received part of the next, whatever control frames are between them", () => {
    const ping = frame("ping", { opcode: opcodes.ping });
    const begun = frame("x".repeat(100), { fin: false });
    const goesOn = frame("x".repeat(50), { opcode: opcodes.continuation, fin: false });
    const last = frame("x".repeat(70_000), { opcode: opcodes.continuation });
    const half = last.subarray(0, 40_014);
    expect(bytesAfter(ping, begun, ping, goesOn, half, last.subarray(40_014))).toEqual([0, 356, 356, 662, 40_918, 0]);
  });
});

describe("incomplete messages", () => {
  it("are bounded over all connections: more data closes a connection with 1013, and releases its bytes", async () => {
    await using edge = await startEdge({ limits: { maxInboundBytes: 300_000, closeTimeoutMs: 100 } });
    const half = (): Buffer => frame("x".repeat(400_000)).subarray(0, 200_000);
    using first = await rawWebSocket(edge);
    first.socket.write(half());
    using second = await rawWebSocket(edge);
    second.socket.write(half());
    const ended = await Promise.race([closed(first), closed(second)]);
    expect(ended).toEqual({ code: 1013, reason: "too much comes at a time" });
    expect(await isUsable(edge)).toBe(true);
    first.socket.destroy();
    second.socket.destroy();
    await expect.poll(() => edge.edge.load.connections).toBe(0);
    await using third = await openWebSocket(edge);
    third.raw.send(`{"jsonrpc":"2.0","id":1,"method":"session/list","params":${" ".repeat(290_000)}{}}`);
    expect(await third.next()).toMatchObject({ id: 1, result: { sessions: [] } });
  });

  it("must be completed in time, whatever pings are between", async () => {
    const limits = { messageTimeoutMs: 50, pingIntervalMs: 40, closeTimeoutMs: 100 };
    await using edge = await startEdge({ limits });
    using slow = await rawWebSocket(edge);
    slow.socket.write(frame("{", { fin: false }));
    const pongs = setInterval(() => slow.socket.write(frame("", { opcode: opcodes.pong })), 10);
    expect(await closed(slow)).toEqual({ code: 1013, reason: "a message came too slowly" });
    clearInterval(pongs);
  });

  async function closed(socket: RawSocket): Promise<ReturnType<typeof closeOf>> {
    return closeOf(await socket.until((text) => closeOf(text) !== undefined));
  }
});

describe("long messages that wait for their answer", () => {
  it("count with them, and are released with it", async () => {
    await using edge = await startEdge({ limits: { maxInboundBytes: 300_000 } });
    await using waiting = await openWebSocket(edge);
    const begun = edge.nextWait();
    const id = crypto.randomUUID();
    const wait = `{"jsonrpc":"2.0","id":1,"method":"delivery/wait","params":${" ".repeat(200_000)}{"deliveryId":"${id}"}}`;
    waiting.raw.send(wait);
    await begun;
    const list = `{"jsonrpc":"2.0","id":2,"method":"session/list","params":${" ".repeat(200_000)}{}}`;
    await using refused = await openWebSocket(edge);
    refused.raw.send(list);
    expect(await refused.closed).toMatchObject({ code: 1013 });
    waiting.send({ jsonrpc: "2.0", id: 3, method: "$/cancelRequest", params: { id: 1 } });
    expect([(await waiting.next()).id, (await waiting.next()).id].sort()).toEqual([1, 3]);
    waiting.raw.send(list);
    expect(await waiting.next()).toMatchObject({ id: 2, result: { sessions: [] } });
  });

  it("count also if they are many short ones", async () => {
    await using edge = await startEdge({ limits: { maxInboundBytes: 300_000 } });
    await using waiting = await openWebSocket(edge);
    const params = `${" ".repeat(40_000)}{"deliveryId":"${crypto.randomUUID()}"}`;
    for (let id = 1; id <= 7; id += 1) {
      const begun = edge.nextWait();
      waiting.raw.send(`{"jsonrpc":"2.0","id":${id},"method":"delivery/wait","params":${params}}`);
      await begun;
    }
    waiting.raw.send(`{"jsonrpc":"2.0","id":8,"method":"delivery/wait","params":${params}}`);
    expect(await waiting.closed).toMatchObject({ code: 1013 });
    // All bytes of the connection are released.
    await expect.poll(() => edge.edge.load.connections).toBe(0);
    await using next = await openWebSocket(edge);
    next.raw.send(`{"jsonrpc":"2.0","id":1,"method":"session/list","params":${" ".repeat(290_000)}{}}`);
    expect(await next.next()).toMatchObject({ id: 1, result: { sessions: [] } });
  });
});
