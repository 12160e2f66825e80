import { describe, expect, it } from "vitest";
import { startEdge, token } from "../../helpers/edge.ts";
import { rawSocket } from "./raw-socket.ts";

const list = '{"jsonrpc":"2.0","id":1,"method":"session/list"}';

describe("a request with an expectation", () => {
  const bearer = `authorization: Bearer ${token}`;

  it.each([
    ["another host", "100-continue", "host: evil.example", 403],
    ["no token", "100-continue", "host: localhost", 401],
    ["an Origin", "100-continue", `host: localhost\r\n${bearer}\r\norigin: https://evil.example`, 403],
    ["another host", "foo", "host: evil.example", 403],
    ["no token", "foo", "host: localhost", 401],
    ["everything required", "foo", `host: localhost\r\n${bearer}`, 417],
  ])(
    "is checked for other faults first: with %s, Expect %s and the headers %s it gets %i",
    async (_title, expectation, head, status) => {
      await using edge = await startEdge();
      using socket = rawSocket(edge, "unix");
      socket.socket.write(post(head, expectation));
      const text = await socket.ended;
      expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
      expect(text).toContain("application/problem+json");
    },
  );

  it("with a body that is too long is answered with 413, without a 100 Continue", async () => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, "unix");
    socket.socket.write(post(`host: localhost\r\n${bearer}`, "100-continue", 2 ** 30));
    expect((await socket.ended).match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 413"]);
  });

  it("gets 100 Continue if it is acceptable, and its socket accepts further ones", async () => {
    await using edge = await startEdge();
    using socket = rawSocket(edge, "unix");
    for (const times of [1, 2]) {
      socket.socket.write(post(`host: localhost\r\n${bearer}`, "100-continue"));
      await socket.until((text) => text.split("HTTP/1.1 100 Continue").length === times + 1);
      socket.socket.write(list);
      await socket.until((text) => text.split('"result"').length === times + 1);
    }
  });

  function post(head: string, expectation: string, length = list.length): string {
    const type = `content-type: application/json\r\ncontent-length: ${length}`;
    return `POST /v1/rpc HTTP/1.1\r\n${head}\r\n${type}\r\nexpect: ${expectation}\r\n\r\n`;
  }
});
