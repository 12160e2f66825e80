import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { expect, test } from "vitest";
import { Bridge } from "../../../../cli/connect/bridge.ts";
import { type FramingName, framings } from "../../../../cli/connect/framing.ts";
import type { WebSocket } from "../../../../client/node-socket.ts";

const call = (id: number): string => `{"jsonrpc":"2.0","id":${id},"method":"session/list"}`;

/** A bridge to a daemon that has not answered yet. */
function carrying(framing: FramingName) {
  const sent: string[] = [];
  const daemon = {
    bufferedAmount: 0,
    send: (data: Buffer) => sent.push(data.toString()),
    resume: () => {},
    pause: () => {},
  } as unknown as WebSocket;
  const input = new PassThrough();
  const output = new PassThrough();
  const bridge = new Bridge({
    framing: framings[framing],
    input,
    output,
    maxMessageBytes: 1_000,
    lingerMs: 60_000,
    signal: new AbortController().signal,
  });
  const ended = bridge.carry(daemon);
  const say = (message: string): boolean => {
    const { head, tail } = framings[framing].around(Buffer.from(message));
    return input.write(`${head}${message}${tail}`);
  };
  return { bridge, input, output, ended, sent, say };
}

test("a call before an unreadable header is answered", async () => {
  const { bridge, input, output, ended, sent, say } = carrying("content-length");
  say(call(1));
  input.write("Content-Length: nonsense\r\n\r\n");
  await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toEqual([call(1)]);
  expect(await Promise.race([ended, Promise.resolve("open")])).toBe("open");
  bridge.onMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}'));
  expect(await ended).toMatchObject({ by: "framing", error: { name: "FramingError" } });
  output.end();
  const written = await text(output);
  expect(written).toContain('"code":-32700');
  expect(written).toContain('{"jsonrpc":"2.0","id":1,"result":{}}');
});

test("a last line without a line end is sent, but not an incomplete one", async () => {
  for (const [last, isWhole] of [
    [call(2), true],
    [call(2).slice(0, -1), false],
  ] as const) {
    const { bridge, input, ended, sent, say } = carrying("jsonl");
    say(call(1));
    input.end(last);
    await new Promise((resolve) => setImmediate(resolve));
    expect(sent).toEqual(isWhole ? [call(1), call(2)] : [call(1)]);
    for (const _call of sent) bridge.onMessage(Buffer.from('{"jsonrpc":"2.0","id":1,"result":{}}'));
    expect(await ended).toEqual({ by: "input", isWhole, unanswered: false });
  }
});

test("data from the daemon after the bridge has ended is not written to the closed output", async () => {
  const { bridge, input, output, ended } = carrying("jsonl");
  const failures: unknown[] = [];
  output.on("error", (error) => failures.push(error));
  input.end();
  await ended;
  output.end();
  bridge.onMessage(Buffer.from('{"jsonrpc":"2.0","method":"session/event","params":{}}'));
  expect(await text(output)).toBe("");
  expect(failures).toEqual([]);
});
