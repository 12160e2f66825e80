import { expect, it } from "vitest";
import { authorization, isUsable, startEdge } from "../../helpers/edge.ts";
import { rawSocket } from "./raw-socket.ts";

const text = '{"jsonrpc":"2.0","id":7,"method":"session/list"}';
const type = "content-type: application/json";

function post(edge: { readonly port: number }, heads: readonly string[], body: string): string {
  const own = [`host: 127.0.0.1:${edge.port}`, `authorization: ${authorization.authorization}`, ...heads];
  return `POST /v1/rpc HTTP/1.1\r\n${own.join("\r\n")}\r\n\r\n${body}`;
}

const length = (body: string): string => `content-length: ${Buffer.byteLength(body)}`;
const long = `${text.slice(0, -1)},"params":{}${" ".repeat(100_000)}}`;

it.each([
  ["plain JSON of a length that it says", [type, length(text)], text],
  ["with a charset", [`${type}; charset=utf-8`, length(text)], text],
  ["with an Accept header", [type, length(text), "accept: application/json;q=0.5, text/html"], text],
  ["in chunks", [type, "transfer-encoding: chunked"], `${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`],
  ["that is long", [type, length(long)], long],
])("a body %s gets the same answer", async (_title, heads, body) => {
  await using edge = await startEdge();
  using socket = rawSocket(edge);
  socket.socket.write(post(edge, [...heads, "connection: close"], body));
  const answer = await socket.ended;
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(answer).toMatch(/^content-type: application\/json; charset=utf-8\r$/m);
  expect(JSON.parse(answer.slice(answer.indexOf("\r\n\r\n")))).toEqual({
    jsonrpc: "2.0",
    id: 7,
    result: { sessions: [] },
  });
});

it("an empty body is invalid JSON, and a notification gets an empty body", async () => {
  await using edge = await startEdge();
  using socket = rawSocket(edge);
  const notification = '{"jsonrpc":"2.0","method":"session/list"}';
  socket.socket.write(post(edge, [type, "content-length: 0"], ""));
  socket.socket.write(post(edge, [type, length(notification), "connection: close"], notification));
  expect(await socket.ended).toMatch(/^HTTP\/1\.1 400 [\s\S]*-32700[\s\S]*HTTP\/1\.1 204 No Content\r\n/);
});

it("a body in many pieces is one text; an incomplete one is not a call", async () => {
  const called: unknown[] = [];
  const list = (params: unknown) => {
    called.push(params);
    return { sessions: [] };
  };
  await using edge = await startEdge({ handlers: { "session/list": list } });
  {
    using broken = rawSocket(edge);
    broken.socket.write(post(edge, [type, length(text)], text.slice(0, -1)));
    expect(await isUsable(edge)).toBe(true);
  }
  const before = called.length;
  using socket = rawSocket(edge);
  const whole = post(edge, [type, length(text), "connection: close"], text);
  for (const byte of whole) socket.socket.write(byte);
  expect(await socket.ended).toMatch(/^HTTP\/1\.1 200 /);
  expect(called.length).toBe(before + 1);
});
