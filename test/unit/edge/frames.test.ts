import { describe, expect, it } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import { isUsable, startEdge } from "../../helpers/edge.ts";
import { closeOf, frame, framesOf, opcodes, rawWebSocket } from "./raw-web-socket.ts";

const list = '{"jsonrpc":"2.0","id":1,"method":"session/list"}';
const limits = { maxFrameBytes: 1_000, closeTimeoutMs: 100 };

describe.each<Transport>(["tcp", "unix"])("frames over %s", (transport) => {
  it.each([
    ["a binary frame", frame(list, { opcode: opcodes.binary }), 1003],
    ["an empty binary frame", frame("", { opcode: opcodes.binary }), 1003],
    ["a text that is not UTF-8", frame(Buffer.from([0x22, 0xff, 0x22])), 1007],
    ["half a character at the end", frame(Buffer.from([0x22, 0xe2, 0x82])), 1007],
    ["a surrogate as bytes", frame(Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])), 1007],
    ["a frame over the limit", frame("x".repeat(1_001)), 1009],
    [
      "fragments that together exceed the limit",
      Buffer.concat([frame("x".repeat(600), { fin: false }), frame("x".repeat(600), { opcode: 0 })]),
      1009,
    ],
    ["a frame that announces 2^62 bytes", Buffer.from([0x81, 0xff, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), 1009],
    ["a frame without a mask", frame(list, { masked: false }), 1002],
    ["reserved bits", frame(list, { reserved: 2 }), 1002],
    ["compression that was not agreed", frame(list, { reserved: 4 }), 1002],
    ["an unknown opcode", frame(list, { opcode: 3 }), 1002],
    ["a continuation of nothing", frame(list, { opcode: 0 }), 1002],
    ["a text within a fragmented text", Buffer.concat([frame("a", { fin: false }), frame("b")]), 1002],
    ["a fragmented ping", frame("", { opcode: opcodes.ping, fin: false }), 1002],
    ["a ping of 126 bytes", frame("x".repeat(126), { opcode: opcodes.ping }), 1002],
    ["a close frame with an invalid code", frame(Buffer.from([0x00, 0x01]), { opcode: opcodes.close }), 1002],
    [
      "16,385 empty fragments",
      Buffer.concat([
        frame("", { fin: false }),
        ...Array.from({ length: 16_385 }, () => frame("", { opcode: 0, fin: false })),
      ]),
      1008,
    ],
  ])("closes its connection alone for %s", async (_title, bytes, code) => {
    await using edge = await startEdge({ limits });
    using socket = await rawWebSocket(edge, transport);
    socket.socket.write(bytes);
    expect(closeOf(await socket.ended)).toMatchObject({ code });
    expect(await isUsable(edge)).toBe(true);
  });

  it("reads a text in fragments, with a ping in between", async () => {
    await using edge = await startEdge({ limits });
    using socket = await rawWebSocket(edge, transport);
    socket.socket.write(
      Buffer.concat(
        [...list].flatMap((letter, at) => [
          frame(letter, { opcode: at === 0 ? opcodes.text : opcodes.continuation, fin: at === list.length - 1 }),
          frame("hello", { opcode: opcodes.ping }),
        ]),
      ),
    );
    const received = await socket.until((text) => text.includes('"id":1'));
    expect(
      framesOf(received).some(({ opcode, payload }) => opcode === opcodes.pong && payload.toString() === "hello"),
    ).toBe(true);
    expect(received).toContain('"result":{"sessions":[]}');
  });

  it("reads frames that arrive a byte at a time, and many at once", async () => {
    await using edge = await startEdge({ limits });
    using socket = await rawWebSocket(edge, transport);
    socket.socket.setNoDelay(true);
    for (const byte of frame(list)) socket.socket.write(Buffer.from([byte]));
    await socket.until((text) => text.includes('"id":1'));
    socket.socket.write(Buffer.concat(Array.from({ length: 500 }, () => frame(list))));
    await socket.until((text) => framesOf(text).length === 501);
  });

  it("reads no more once it has closed: frames after that one have no effect", async () => {
    let called = 0;
    const handlers = {
      "session/list": () => {
        called += 1;
        return { sessions: [] };
      },
    };
    await using edge = await startEdge({ limits, handlers });
    using socket = await rawWebSocket(edge, transport);
    socket.socket.write(Buffer.concat([frame("", { opcode: opcodes.binary }), frame(list), frame(list)]));
    const received = await socket.ended;
    expect(framesOf(received).map(({ opcode }) => opcode)).toEqual([opcodes.close]);
    expect(called).toBe(0);
  });

  it("answers the messages before the frame for which it closes, or closes, but never in the wrong order", async () => {
    await using edge = await startEdge({ limits });
    using socket = await rawWebSocket(edge, transport);
    socket.socket.write(Buffer.concat([frame(list), frame("", { opcode: opcodes.close })]));
    const kinds = framesOf(await socket.ended).map(({ opcode }) => opcode);
    expect(kinds.at(-1)).toBe(opcodes.close);
    expect(kinds.filter((opcode) => opcode === opcodes.close)).toHaveLength(1);
  });

  it("survives a peer that disconnects in the middle of a frame", async () => {
    await using edge = await startEdge({ limits });
    const socket = await rawWebSocket(edge, transport);
    socket.socket.write(frame(list).subarray(0, 20));
    if (transport === "tcp") socket.socket.resetAndDestroy();
    else socket.socket.destroy();
    await socket.ended;
    expect(await isUsable(edge)).toBe(true);
  });
});
