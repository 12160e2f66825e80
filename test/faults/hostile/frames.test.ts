import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { patience } from "../../helpers/patience.ts";
import { closeOf, frame, framesOf, opcodes } from "../../unit/edge/raw-web-socket.ts";
import { goodCall, Target, transports } from "./target.ts";

const mib = 1024 * 1024;

/** The head of a masked text frame that claims this length. */
function claim(bytes: number, first = 0x81): Buffer {
  const head = Buffer.alloc(14);
  head.writeUInt8(first, 0);
  head.writeUInt8(0xff, 1);
  head.writeBigUInt64BE(BigInt(bytes), 2);
  return head;
}

const { text, binary, close, ping, pong, continuation } = opcodes;
const begun = frame("{", { fin: false });

const violations: readonly (readonly [string, Buffer, number])[] = [
  ["a binary frame", frame(goodCall, { opcode: binary }), 1003],
  ["an empty binary frame", frame("", { opcode: binary }), 1003],
  [
    "a binary message in fragments",
    Buffer.concat([frame("a", { opcode: binary, fin: false }), frame("b", { opcode: continuation })]),
    1003,
  ],
  ["the head of a frame of 101 MB", claim(101_000_000), 1009],
  ["the head of a binary frame of 101 MB", claim(101_000_000, 0x82), 1009],
  ["the head of a frame of one byte more than allowed", claim(16 * mib + 1), 1009],
  ["the head of a frame of 2^53 bytes", claim(2 ** 53), 1009],
  ["the head of a frame of 2^63 bytes", Buffer.concat([Buffer.from([0x81, 0xff, 0x80]), Buffer.alloc(11)]), 1009],
  ["a fragment that continues for 101 MB", Buffer.concat([begun, claim(101_000_000, 0x80)]), 1009],
  ["compression that was not agreed", frame(goodCall, { reserved: 4 }), 1002],
  ["the second reserved bit", frame(goodCall, { reserved: 2 }), 1002],
  ["the third reserved bit", frame(goodCall, { reserved: 1 }), 1002],
  ["a compressed ping", frame("", { opcode: ping, reserved: 4 }), 1002],
  ["a frame without a mask", frame(goodCall, { masked: false }), 1002],
  ["a ping without a mask", frame("", { opcode: ping, masked: false }), 1002],
  ["an empty frame without a mask", frame("", { masked: false }), 1002],
  ["a ping of 126 bytes", frame("x".repeat(126), { opcode: ping }), 1002],
  ["a pong of 64 KiB", frame("x".repeat(65_536), { opcode: pong }), 1002],
  ["a close of 126 bytes", frame(Buffer.alloc(126, 3), { opcode: close }), 1002],
  ["a close of one byte", frame("x", { opcode: close }), 1002],
  ["a close with the code 1005", frame(Buffer.from([0x03, 0xed]), { opcode: close }), 1002],
  ["a close with a reason that is not text", frame(Buffer.from([0x03, 0xe8, 0xff]), { opcode: close }), 1007],
  ["a ping in fragments", frame("", { opcode: ping, fin: false }), 1002],
  ["a continuation of nothing", frame("a", { opcode: continuation }), 1002],
  ["a text within a text", Buffer.concat([begun, frame("}")]), 1002],
  ...[3, 4, 5, 6, 7, 11, 12, 13, 14, 15].map(
    (opcode) => [`the reserved opcode ${opcode}`, frame("", { opcode }), 1002] as const,
  ),
  [
    "half a character that goes on wrongly",
    Buffer.concat([frame(Buffer.from([0x22, 0xe2]), { fin: false }), frame("x", { opcode: continuation })]),
    1007,
  ],
  [
    "more fragments than may be",
    Buffer.concat([begun, ...Array.from({ length: 16_385 }, () => frame("", { opcode: continuation, fin: false }))]),
    1008,
  ],
];

describe("frames that break RFC 6455", () => {
  let target: Target;
  beforeAll(async () => {
    target = await Target.start({ closeTimeoutMs: 100, pingIntervalMs: 600_000 });
  });
  afterAll(async () => await target[Symbol.asyncDispose]());

  describe.each(transports)("over %s", (transport) => {
    test.each(violations)("close only their own connection, with a code: %s", async (_title, bytes, code) => {
      using socket = await target.rawWebSocket(transport);
      socket.socket.write(bytes);
      const received = await socket.ended;
      expect(closeOf(received)).toMatchObject({ code });
      expect(framesOf(received)).toHaveLength(1);
      expect(await target.isUsable()).toBe(true);
    });

    test("differ from empty frames, pings between fragments and single bytes, which keep the connection open", async () => {
      using socket = await target.rawWebSocket(transport);
      socket.socket.write(frame(""));
      await socket.until((heard) => heard.includes("parse_error"));
      socket.socket.write(Buffer.concat([frame("", { fin: false }), frame("", { opcode: continuation })]));
      socket.socket.write(
        Buffer.concat([frame(goodCall.slice(0, 9), { fin: false }), frame("x".repeat(125), { opcode: ping })]),
      );
      socket.socket.write(frame("unasked", { opcode: pong }));
      socket.socket.write(frame(goodCall.slice(9), { opcode: continuation }));
      const received = await socket.until((heard) => heard.includes('"result"'));
      const heard = framesOf(received);
      expect(heard.map(({ opcode }) => opcode).sort()).toEqual([text, text, text, pong]);
      socket.socket.setNoDelay(true);
      for (const byte of frame(goodCall)) socket.socket.write(Buffer.from([byte]));
      await socket.until((bytes) => framesOf(bytes).length === 5);
    });

    test("include unrequested extensions and subprotocols, which are not accepted", async () => {
      const offers = [
        "sec-websocket-extensions: permessage-deflate; client_max_window_bits, x-webkit-deflate-frame",
        "sec-websocket-protocol: chat, pi-rpcd.v2, pi-rpcd.v1",
      ];
      using socket = await target.rawWebSocket(transport, offers);
      socket.socket.write(frame(goodCall));
      const received = await socket.until((heard) => heard.includes('"result"'));
      expect(received).not.toMatch(/sec-websocket-extensions/i);
      expect(received).toMatch(/sec-websocket-protocol: pi-rpcd\.v1\r\n/i);
    });
  });

  test("with an endless fragmented text are bounded, and released with their connection", async () => {
    const sockets = await Promise.all(transports.map((transport) => target.rawWebSocket(transport)));
    for (const { socket } of sockets) {
      socket.write(frame("[", { fin: false }));
      for (let i = 0; i < 15; i += 1) socket.write(frame(Buffer.alloc(mib, " "), { opcode: continuation, fin: false }));
    }
    expect(await target.isUsable()).toBe(true);
    for (const { socket } of sockets) socket.write(frame(Buffer.alloc(mib, " "), { opcode: continuation, fin: false }));
    for (const { ended } of sockets) expect(closeOf(await ended)).toMatchObject({ code: 1009 });
  });

  test("leave nothing, nor do peers that disconnect within a frame or within the upgrade", async () => {
    for (const transport of transports) {
      for (const cut of [1, 5, 20]) {
        const socket = await target.rawWebSocket(transport);
        socket.socket.write(frame(goodCall).subarray(0, cut));
        socket.socket.destroy();
        const upgrading = target.raw(transport);
        upgrading.socket.end(target.upgradeHead());
        upgrading.socket.destroy();
        await Promise.all([socket.ended, upgrading.ended]);
      }
    }
    await vi.waitUntil(async () => (await target.connections()) === 1, patience);
    expect(await target.isUsable()).toBe(true);
    expect(await target.growth()).toBeLessThan(1.1);
  });
});
