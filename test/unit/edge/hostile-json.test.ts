import { describe, expect, it } from "vitest";
import type { Transport } from "../../../server/edge/admission.ts";
import { type HttpAnswer, http, isUsable, json, openWebSocket, startEdge, type TestEdge } from "../../helpers/edge.ts";

/** A text that no client would write, and the code of its answer; without one a result is expected. */
interface Hostile {
  readonly title: string;
  readonly text: () => Buffer | string;
  readonly code: number | undefined;
  /** A part of the answer's message or result. */
  readonly says?: string;
}

const call = (params: string, more = ""): string =>
  `{"jsonrpc":"2.0","id":1,"method":"session/command","params":${params}${more}}`;
const command = (data: string): string => call(`{"sessionId":"s","command":{"type":"a","data":${data}}}`);
const invalidRequest = -32600;
const invalidParams = -32602;
const parseError = -32700;

const texts: readonly Hostile[] = [
  {
    title: "arrays nested 5 million deep",
    text: () => Buffer.alloc(5_000_000, "["),
    code: invalidRequest,
    says: "deeper",
  },
  {
    title: "objects nested 1 million deep",
    text: () => '{"a":'.repeat(1_000_000),
    code: invalidRequest,
    says: "deeper",
  },
  {
    title: "a value nested 129 deep",
    text: () => command(`${"[".repeat(126)}${"]".repeat(126)}`),
    code: invalidRequest,
    says: "deeper",
  },
  { title: "a value nested 128 deep", text: () => command(`${"[".repeat(125)}${"]".repeat(125)}`), code: undefined },
  {
    title: "brackets within a string",
    text: () => command(`"\\"${"[".repeat(1_000)}"`),
    code: undefined,
    says: "[[[[",
  },
  {
    title: "brackets that close nothing, then deep ones",
    text: () => `${"]".repeat(500)}${"[".repeat(600)}`,
    code: parseError,
  },
  { title: "lone surrogates", text: () => command('"\\ud800 \\udfff"'), code: undefined, says: "\\ud800 \\udfff" },
  {
    title: "duplicate keys: the last counts",
    text: () => call("{}", ',"method":"session/list"'),
    code: undefined,
    says: "sessions",
  },
  {
    title: "the key __proto__",
    text: () => command('{"__proto__":{"isAdmin":true}}'),
    code: invalidRequest,
    says: "__proto__",
  },
  {
    title: "the key __proto__, escaped",
    text: () => command('{"\\u005f_proto__":{"isAdmin":true}}'),
    code: invalidRequest,
  },
  {
    title: "the key __proto__ in the request itself",
    text: () => '{"__proto__":{"jsonrpc":"2.0"}}',
    code: invalidRequest,
  },
  { title: "the key __proto__ in a batch", text: () => `[${command('{"__proto__":1}')}]`, code: invalidRequest },
  {
    title: "the keys constructor.prototype",
    text: () => command('{"constructor":{"prototype":{}}}'),
    code: invalidRequest,
  },
  { title: "the key constructor alone", text: () => command('{"constructor":"x"}'), code: undefined },
  {
    title: "the text of the parser's own error",
    text: () => "Object contains forbidden prototype property",
    code: parseError,
  },
  { title: "a number beyond doubles", text: () => command("1e999"), code: undefined, says: '"data":null' },
  { title: "a number of 100,000 digits", text: () => command("9".repeat(100_000)), code: undefined },
  {
    title: "a number instead of an integer",
    text: () => '{"jsonrpc":"2.0","id":1,"method":"delivery/wait","params":{"deliveryId":"a","timeoutMs":1e999}}',
    code: invalidParams,
  },
  { title: "NUL within a string", text: () => command('"a\u0000b"'), code: parseError },
  { title: "NUL, escaped", text: () => command('"a\\u0000b"'), code: undefined },
  { title: "NUL after the JSON", text: () => `${command("1")}\u0000`, code: parseError },
  { title: "a BOM before the JSON, which is passed over", text: () => `\ufeff${command("1")}`, code: undefined },
  { title: "two BOMs", text: () => `\ufeff\ufeff${command("1")}`, code: parseError },
  { title: "UTF-16", text: () => Buffer.from(command("1"), "utf16le"), code: parseError },
  { title: "NaN", text: () => command("NaN"), code: parseError },
  { title: "a comment", text: () => `/**/${command("1")}`, code: parseError },
  {
    title: "a method of 1 MB",
    text: () => `{"jsonrpc":"2.0","id":1,"method":"${"m".repeat(1_000_000)}"}`,
    code: -32601,
  },
  {
    title: "a param with a name of 1 MB",
    text: () => `{"jsonrpc":"2.0","id":1,"method":"session/list","params":{"${"p".repeat(1_000_000)}":1}}`,
    code: invalidParams,
  },
  {
    title: "100,000 unknown params",
    text: () => call(`{${Array.from({ length: 100_000 }, (_, at) => `"p${at}":1`).join()}}`),
    code: invalidRequest,
    says: "maxObjectKeys",
  },
  {
    title: "10,000 unknown params",
    text: () => call(`{${Array.from({ length: 10_000 }, (_, at) => `"p${at}":1`).join()}}`),
    code: invalidParams,
  },
  {
    title: "a batch of 101",
    text: () => `[${Array.from({ length: 101 }, () => command("1")).join()}]`,
    code: invalidRequest,
    says: "100",
  },
];

describe.each<Transport>(["tcp", "unix"])("hostile JSON over %s", (transport) => {
  it.each(texts)("is answered as a body and as a frame: $title", async ({ text, code, says = "" }) => {
    await using edge = await startEdge();
    const hostile = Buffer.from(text());
    await using webSocket = await openWebSocket(edge, transport);
    webSocket.raw.send(hostile, { binary: false });
    const framed = await webSocket.next();
    const { body, status } = await post(edge, transport, hostile);
    for (const answer of [body, framed]) {
      expect(answer.error?.code).toBe(code);
      expect(JSON.stringify(answer)).toContain(says);
      if (code !== undefined) expect(JSON.stringify(answer).length).toBeLessThan(10_000);
    }
    expect(status).toBe(code === parseError || code === invalidRequest ? 400 : 200);
    expect(await webSocket.call("session/list")).toHaveProperty("result");
    expect(await isUsable(edge)).toBe(true);
    expect({}).not.toHaveProperty("isAdmin");
  });

  it("accepts a string of 16 MiB less its surroundings, and returns it", async () => {
    await using edge = await startEdge();
    const long = "x".repeat(16 * 1024 * 1024 - 200);
    await using webSocket = await openWebSocket(edge, transport);
    webSocket.raw.send(command(`"${long}"`));
    expect((await webSocket.next()).result.data.data).toHaveLength(long.length);
    const { body } = await post(edge, transport, command(`"${long}"`));
    expect(body.result.data.data).toHaveLength(long.length);
  });

  it("answers a body that is not UTF-8 with a parse error", async () => {
    await using edge = await startEdge();
    const body = Buffer.concat([
      Buffer.from(command('"')).subarray(0, -3),
      Buffer.from([0xff, 0xfe]),
      Buffer.from('"}}}'),
    ]);
    expect(await post(edge, transport, body)).toMatchObject({
      status: 400,
      body: { id: null, error: { code: parseError } },
    });
    expect(await isUsable(edge)).toBe(true);
  });
});

describe("results that cannot be written", () => {
  const deep = (): unknown => {
    let value: unknown = 0;
    for (let depth = 0; depth < 100_000; depth += 1) value = [value];
    return { data: value };
  };

  it.each([
    { title: "nested too deep", result: deep },
    {
      title: "with a cycle",
      result: () => {
        const value: Record<string, unknown> = {};
        value["self"] = value;
        return { data: value };
      },
    },
    { title: "with a bigint", result: () => ({ data: 1n }) },
  ])("are an error of their own call alone: $title", async ({ result }) => {
    await using edge = await startEdge({ handlers: { "session/command": result } });
    const batch = `[${command("1")},{"jsonrpc":"2.0","id":2,"method":"session/list"}]`;
    const { status, body } = await post(edge, "tcp", batch);
    expect(status).toBe(200);
    expect(body).toEqual([
      {
        jsonrpc: "2.0",
        id: 1,
        error: expect.objectContaining({ code: -32603, data: { name: "internal_error", retryable: false } }),
      },
      { jsonrpc: "2.0", id: 2, result: { sessions: [] } },
    ]);
    await using webSocket = await openWebSocket(edge);
    expect(await webSocket.call("session/command", { sessionId: "s", command: { type: "a" } })).toMatchObject({
      id: 1,
      error: { code: -32603 },
    });
    expect(await webSocket.call("session/list")).toHaveProperty("result");
  });
});

describe("errors that no handler should throw", () => {
  it.each([
    ["an Error", new Error("the secret text")],
    ["a string", "the secret text"],
    ["undefined", undefined],
    ["null", null],
    ["an object with a code", { code: 1, message: "the secret text" }],
  ])("are an internal error that tells nothing: %s", async (_title, thrown) => {
    const fail = (): never => {
      throw thrown;
    };
    await using edge = await startEdge({ handlers: { "session/command": fail } });
    const { status, text, body } = await post(edge, "tcp", command("1"));
    expect(status).toBe(200);
    expect(body.error).toMatchObject({ code: -32603, data: { name: "internal_error" } });
    expect(text).not.toContain("secret");
    expect(edge.logged.some((line) => line.includes("failed unexpectedly"))).toBe(true);
  });
});

function post(edge: TestEdge, transport: Transport, body: Buffer | string): Promise<HttpAnswer> {
  return http(edge, { transport, method: "POST", path: "/v1/rpc", headers: json, body });
}
