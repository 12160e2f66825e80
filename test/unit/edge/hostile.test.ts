import { describe, expect, it, vi } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import { http, isUsable, json, openWebSocket, startEdge, type TestEdge } from "../../helpers/edge.ts";
import { closeOf, frame, opcodes, upgraded } from "./frames.ts";

const mebibyte = 1024 * 1024;
const sessionId = "01920000-0000-7000-8000-000000000002";
const echo = (json: string): string =>
  `{"jsonrpc":"2.0","id":1,"method":"session/command","params":{"sessionId":"${sessionId}","command":{"type":"x","v":${json}}}}`;
const listing = '{"jsonrpc":"2.0","id":1,"method":"session/list"}';

interface Hostile {
  readonly title: string;
  readonly text: () => string;
  /** The code of the error, or what the echoed value must be. */
  readonly code?: number;
  readonly value?: unknown;
}

const corpus: readonly Hostile[] = [
  { title: "5 million brackets", text: () => "[".repeat(5_000_000), code: -32600 },
  { title: "3 million objects", text: () => '{"a":'.repeat(3_000_000), code: -32600 },
  {
    title: "5 million levels that end",
    text: () => echo(`${"[".repeat(5_000_000)}${"]".repeat(5_000_000)}`),
    code: -32600,
  },
  { title: "a string of 15 MiB", text: () => echo(`"${"x".repeat(15 * mebibyte)}"`), value: "x".repeat(15 * mebibyte) },
  {
    title: "15 MiB of escapes",
    text: () => echo(`"${"\\u0041".repeat(2 * mebibyte)}"`),
    value: "A".repeat(2 * mebibyte),
  },
  { title: "a million empty arrays", text: () => echo(`[${"[],".repeat(1_000_000)}0]`) },
  { title: "a number of a million digits", text: () => echo("9".repeat(1_000_000)), value: null },
  { title: "numbers beyond all bounds", text: () => echo("[1e999,-1e999,1e-999]"), value: [null, null, 0] },
  { title: "escaped lone surrogates", text: () => echo('"\\ud800 \\udc00\\ud800"'), value: "\ud800 \udc00\ud800" },
  { title: "an escaped NUL", text: () => echo('"\\u0000"'), value: "\0" },
  { title: "a bare NUL in a string", text: () => echo('"\0"'), code: -32700 },
  { title: "NULs instead of JSON", text: () => "\0".repeat(1_000), code: -32700 },
  { title: "line separators in a string", text: () => echo('"\u2028\u2029"'), value: "\u2028\u2029" },
  { title: "a key twice: the last one counts", text: () => echo('1,"v":2'), value: 2 },
  { title: "a method twice: the last one counts", text: () => listing.replace("{", '{"method":"daemon/info",') },
  { title: "__proto__", text: () => echo('{"__proto__":{"a":1}}'), code: -32600 },
  { title: "constructor.prototype", text: () => echo('{"constructor":{"prototype":{}}}'), code: -32600 },
  { title: "comments", text: () => `/* ${listing} */ ${listing}`, code: -32700 },
  { title: "a comma too many", text: () => echo("[1,]"), code: -32700 },
  { title: "NaN", text: () => echo("NaN"), code: -32700 },
  { title: "a text that ends early", text: () => listing.slice(0, -1), code: -32700 },
  {
    title: "101 requests in a batch",
    text: () => `[${Array.from({ length: 101 }, () => listing).join()}]`,
    code: -32600,
  },
  { title: "a million nulls in a batch", text: () => `[${"null,".repeat(1_000_000)}null]`, code: -32600 },
];

interface Answer {
  readonly error?: { readonly code: number; readonly message: string };
  readonly result?: { readonly data: { readonly v: unknown } };
}

const ways: Readonly<Record<string, (edge: TestEdge, text: string) => Promise<Answer>>> = {
  "a WebSocket over TCP": (edge, text) => overWebSocket(edge, "tcp", text),
  "a WebSocket over a Unix socket": (edge, text) => overWebSocket(edge, "unix", text),
  "HTTP over TCP": (edge, text) => overHttp(edge, "tcp", text),
  "HTTP over a Unix socket": (edge, text) => overHttp(edge, "unix", text),
};

describe.each(Object.entries(ways))("hostile JSON over %s", (_way, say) => {
  it.each(corpus)("is answered, and the edge goes on: $title", async ({ text, code, value }) => {
    await using edge = await startEdge();
    const answer = await say(edge, text());
    expect(answer.error?.code).toBe(code);
    expect((answer.error?.message ?? "").length).toBeLessThan(300);
    if (value !== undefined) expect(answer.result?.data.v).toEqual(value);
    expect(await isUsable(edge)).toBe(true);
  });
});

describe.each<Transport>(["tcp", "unix"])("hostile frames over %s", (transport) => {
  it.each([
    ["a binary frame", [frame(opcodes.binary, listing)], 1003],
    ["an empty binary frame", [frame(opcodes.binary, "")], 1003],
    ["binary fragments", [frame(opcodes.binary, "{", { fin: false }), frame(opcodes.continuation, "}")], 1003],
    ["invalid UTF-8", [frame(opcodes.text, Buffer.from([0x22, 0xff, 0x22]))], 1007],
    [
      "UTF-8 that a fragment cuts for good",
      [frame(opcodes.text, Buffer.from([0xe2]), { fin: false }), frame(opcodes.continuation, "x")],
      1007,
    ],
    ["a surrogate in UTF-8", [frame(opcodes.text, Buffer.from([0xed, 0xa0, 0x80]))], 1007],
    ["a frame over the limit", [frame(opcodes.text, "x".repeat(1_001))], 1009],
    [
      "the head alone of a frame of 2^53 bytes",
      [Buffer.from([0x81, 0xff, 0, 0x1f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff])],
      1009,
    ],
    [
      "fragments over the limit",
      Array.from({ length: 3 }, (_, n) => frame(n === 0 ? opcodes.text : 0, "x".repeat(400), { fin: false })),
      1009,
    ],
    ["a frame without a mask", [frame(opcodes.text, listing, { masked: false })], 1002],
    ["a compressed frame", [frame(opcodes.text, listing, { reserved: 4 })], 1002],
    ["an unknown opcode", [frame(opcodes.unknown, listing)], 1002],
    ["a continuation of nothing", [frame(opcodes.continuation, listing)], 1002],
    ["a message within another", [frame(opcodes.text, "{", { fin: false }), frame(opcodes.text, "}")], 1002],
    ["a ping in fragments", [frame(opcodes.ping, "", { fin: false })], 1002],
    ["a ping of 126 bytes", [frame(opcodes.ping, "x".repeat(126))], 1002],
    ["a close frame with a code that is none", [frame(opcodes.close, Buffer.from([0, 1]))], 1002],
    [
      "too many fragments",
      [frame(opcodes.text, "", { fin: false }), ...Array.from({ length: 17_000 }, () => frame(0, "", { fin: false }))],
      1008,
    ],
  ] as const)("close the connection as documented: %s", async (_title, frames, code) => {
    await using edge = await startEdge({ limits: { maxFrameBytes: 1_000 } });
    using socket = await upgraded(edge, transport);
    await using bystander = await openWebSocket(edge, transport);
    for (const one of frames) socket.socket.write(one);
    const text = await socket.until((heard) => closeOf(heard) !== undefined);
    expect(closeOf(text)).toEqual({ code, reason: code === 1003 ? "messages are text" : "" });
    // Without its answer to the close, the socket is ended after a time.
    socket.socket.destroy();
    expect((await bystander.call("session/list")).result).toEqual({ sessions: [] });
    expect(await isUsable(edge)).toBe(true);
  });

  it("takes a request in many fragments, with a ping among them", async () => {
    await using edge = await startEdge();
    using socket = await upgraded(edge, transport);
    const bytes = [...listing];
    for (const [at, byte] of bytes.entries()) {
      const fin = at === bytes.length - 1;
      socket.socket.write(frame(at === 0 ? opcodes.text : opcodes.continuation, byte, { fin }));
      if (at === 9) socket.socket.write(frame(opcodes.ping, "are you there"));
    }
    const text = await socket.until((heard) => heard.includes("sessions"));
    expect(text).toContain("are you there");
    expect(text).toContain('{"jsonrpc":"2.0","id":1,"result":{"sessions":[]}}');
  });

  it("takes a frame that comes byte by byte", async () => {
    await using edge = await startEdge();
    using socket = await upgraded(edge, transport);
    for (const byte of frame(opcodes.text, listing)) socket.socket.write(Buffer.of(byte));
    expect(await socket.until((heard) => heard.includes("sessions"))).toContain('"id":1');
  });

  it("runs nothing that stands behind the frame for which it closes", async () => {
    const handler = vi.fn(() => ({ sessions: [] }));
    await using edge = await startEdge({ handlers: { "session/list": handler } });
    using socket = await upgraded(edge, transport);
    const call = frame(opcodes.text, listing);
    socket.socket.write(Buffer.concat([call, frame(opcodes.binary, ""), call, call]));
    await socket.until((heard) => closeOf(heard) !== undefined);
    socket.socket.write(Buffer.concat([call, frame(opcodes.close, "")]));
    await socket.ended;
    expect(handler).toHaveBeenCalledTimes(1);
  });

  it("ends a peer that does not answer the close", async () => {
    await using edge = await startEdge({ limits: { closeTimeoutMs: 50 } });
    using socket = await upgraded(edge, transport);
    socket.socket.write(frame(opcodes.binary, ""));
    expect(closeOf(await socket.ended)?.code).toBe(1003);
  });
});

async function overWebSocket(edge: TestEdge, transport: Transport, text: string): Promise<Answer> {
  await using webSocket = await openWebSocket(edge, transport);
  webSocket.raw.send(text);
  const answer = await webSocket.next();
  // The same connection goes on.
  expect((await webSocket.call("session/list", {}, "after")).id).toBe("after");
  return answer;
}

async function overHttp(edge: TestEdge, transport: Transport, text: string): Promise<Answer> {
  const { body } = await http(edge, { transport, method: "POST", path: "/v1/rpc", headers: json, body: text });
  return body;
}
