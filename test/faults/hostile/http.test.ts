import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { goodCall, Target, transports, upgradeHeaders } from "./target.ts";

/** On a loaded machine a request takes long. */
const patient = { headersTimeoutMs: 600_000, requestTimeoutMs: 600_000 };

let target: Target;
beforeAll(async () => {
  target = await Target.start({ closeTimeoutMs: 100, ...patient });
});
afterAll(async () => await target[Symbol.asyncDispose]());

const json = "content-type: application/json";
const length = `content-length: ${goodCall.length}`;
/** A second request after the body, which a reader with another idea of the length would treat as separate. */
const smuggled = (head: string): string => `0\r\n\r\n${head}`;

type Raw = readonly [title: string, text: () => string, status: number];

/** Requests that are answered with an error, after which the socket is closed. */
const malformed: readonly Raw[] = [
  ["two lengths that differ", () => post(["content-length: 5", length], goodCall), 400],
  ["two lengths that are the same", () => post([length, length], goodCall), 400],
  ["two lengths in one header", () => post([`content-length: ${goodCall.length}, ${goodCall.length}`], goodCall), 400],
  ["a length with a sign", () => post([`content-length: +${goodCall.length}`], goodCall), 400],
  ["a length in hexadecimal", () => post(["content-length: 0x10"], goodCall), 400],
  ["a length beyond 2^64", () => post(["content-length: 18446744073709551617"], goodCall), 400],
  ["a length with a space within", () => post(["content-length: 1 0"], goodCall), 400],
  ["a length and chunks", () => post([length, "transfer-encoding: chunked"], smuggled(post([length], goodCall))), 400],
  ["chunks and a length", () => post(["transfer-encoding: chunked", length], smuggled(post([length], goodCall))), 400],
  ["an unknown transfer coding", () => post(["transfer-encoding: xchunked"], goodCall), 501],
  ["chunked twice", () => post(["transfer-encoding: chunked, chunked"], smuggled(post([length], goodCall))), 400],
  ["chunked, but not as the last", () => post(["transfer-encoding: chunked, identity"], goodCall), 400],
  [
    "identity, and chunked in a header of its own",
    () => post(["transfer-encoding: chunked", "transfer-encoding: identity"], goodCall),
    400,
  ],
  ["a space before the colon", () => post(["transfer-encoding : chunked"], smuggled(post([length], goodCall))), 400],
  ["a tab before the header's name", () => post(["x: y", "\ttransfer-encoding: chunked"], goodCall), 400],
  ["a header on two lines", () => post(["transfer-encoding:\r\n chunked"], goodCall), 400],
  ["a vertical tab before chunked", () => post(["transfer-encoding: \u000bchunked"], goodCall), 400],
  ["NUL in a header", () => post(["x: a\0b"], goodCall), 400],
  ["CR alone in a header", () => post(["x: a\rhost: evil.example"], goodCall), 400],
  ["LF alone as the end of lines", () => post([length], goodCall).replaceAll("\r\n", "\n"), 400],
  ["a chunk whose size is not a number", () => chunked("zz\r\n"), 400],
  ["a chunk whose size is negative", () => chunked("-1\r\n"), 400],
  ["a chunk of 2^64 bytes", () => chunked("10000000000000000\r\n"), 400],
  ["a chunk longer than it says", () => chunked(`1\r\n${goodCall}\r\n0\r\n\r\n`), 400],
  ["a chunk that ends with LF alone", () => chunked("1\nx\n0\n\n"), 400],
  ["chunk extensions without end", () => chunked(`1;${"x".repeat(40_000)}`), 413],
  ["HTTP/2's preface", () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u0004\0\0\0\0\0", 400],
  ["an unknown version", () => "GET /healthz HTTP/9.9\r\nhost: localhost\r\n\r\n", 400],
  ["a request for SIP", () => "OPTIONS sip:a SIP/2.0\r\nhost: localhost\r\n\r\n", 400],
  ["an invalid method", () => "G\tET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", 400],
  ["a path with a space", () => target.head("GET /health z"), 400],
  ["CONNECT", () => target.head("CONNECT localhost:22"), 405],
  ["CONNECT to a path", () => target.head("CONNECT /v1/rpc"), 405],
  ["CONNECT that is an upgrade too", () => target.head("CONNECT localhost:22", upgradeHeaders), 405],
  ["a header of 17 KiB", () => post([length, `x: ${"y".repeat(17 * 1024)}`], goodCall), 431],
  ["a header's name of 17 KiB", () => post([length, `${"x".repeat(17 * 1024)}: y`], goodCall), 431],
  ["a path of 17 KiB", () => target.head(`GET /${"p".repeat(17 * 1024)}`), 431],
  ["4,000 headers", () => post([length, ...Array.from({ length: 4_000 }, (_, at) => `x${at}: y`)], goodCall), 431],
];

/** Requests that are answered with an error, after which the socket stays open. */
const refused: readonly Raw[] = [
  ["TRACE", () => target.head("TRACE /v1/rpc"), 405],
  [
    "OPTIONS, as browsers ask first",
    () => target.head("OPTIONS /v1/rpc", ["access-control-request-method: POST"]),
    405,
  ],
  ["OPTIONS of everything", () => target.head("OPTIONS *"), 404],
  ["PATCH", () => target.head("PATCH /v1/rpc"), 405],
  ["an absolute form of an unknown path", () => target.head(`GET http://localhost:${target.port}/v2`), 404],
  ["an absolute form of another host", () => target.head("GET http://evil.example/v1/deliveries"), 403],
  ["an absolute form with a user", () => target.head(`GET http://a@localhost:${target.port}/v1/deliveries`), 403],
  ["an absolute form of a file", () => target.head("GET file:///etc/passwd"), 403],
  ["a path with an encoded slash", () => target.head("GET /v1%2fdeliveries"), 404],
  ["a path with two slashes", () => target.head("GET //v1/deliveries"), 404],
  ["a path that goes up", () => target.head("GET /v1/../v1/deliveries"), 404],
  ["a path that goes up, encoded", () => target.head("GET /v1/%2e%2e/v1/deliveries"), 404],
  ["a session that goes up", () => target.head("GET /v1/sessions/..%2f..%2fetc%2fpasswd/deliveries"), 405],
  ["a path that cannot be decoded", () => target.head("GET /v1/deliveries/%zz"), 400],
  ["a path that decodes to no UTF-8", () => target.head("GET /v1/deliveries/%ff%c0%80"), 400],
  ["a path with NUL", () => target.head("GET /v1/deliveries/a%00"), 400],
  ["an id that goes up", () => target.head("GET /v1/deliveries/.."), 400],
  ["an id that goes up, encoded", () => target.head("GET /v1/deliveries/%2e%2e%2f%2e%2e%2fetc%2fpasswd"), 400],
  ["an id that goes up, encoded twice", () => target.head("GET /v1/deliveries/%252e%252e%252fetc"), 400],
  ["an id that goes up, with backslashes", () => target.head("GET /v1/deliveries/..%5c..%5cetc"), 400],
  ["an id like an option", () => target.head("GET /v1/deliveries/--help"), 400],
  ["an id of 8,000 characters", () => target.head(`GET /v1/deliveries/${"a".repeat(8_000)}`), 400],
  [
    "a prototype in the query",
    () => target.head("GET /v1/deliveries?__proto__[isAdmin]=1&constructor.prototype=2"),
    400,
  ],
  ["a query of 5,000 names", () => target.head(`GET /v1/deliveries?${"a&".repeat(5_000)}`), 400],
  ["no content type", () => post([length], goodCall, []), 415],
  ["plain text", () => post([length], goodCall, ["content-type: text/plain"]), 415],
  ["plain text that names JSON", () => post([length], goodCall, ["content-type: text/plain; application/json"]), 415],
  ["a form", () => post([length], goodCall, ["content-type: application/x-www-form-urlencoded"]), 415],
  [
    "a form of parts",
    () => post([length], goodCall, ["content-type: multipart/form-data; boundary=application/json"]),
    415,
  ],
  ["JSON by another name", () => post([length], goodCall, ["content-type: application/json-patch+json"]), 415],
  ["two content types in one", () => post([length], goodCall, ["content-type: application/json, text/plain"]), 415],
  ["a compressed body", () => post([length, "content-encoding: gzip"], goodCall), 415],
  ["a body of 100 MB by its length", () => post(["content-length: 100000000"], ""), 413],
];

function post(headers: readonly string[], body: string, type: readonly string[] = [json], to = target): string {
  return `${to.head("POST /v1/rpc", [...type, ...headers])}${body}`;
}

const chunked = (chunks: string, to = target): string => post(["transfer-encoding: chunked"], chunks, [json], to);
const statuses = (received: string): readonly number[] =>
  [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));

describe.each(transports)("hostile HTTP over %s", (transport) => {
  test.each(malformed)("is answered once, as a problem, and closed: %s", async (_title, text, status) => {
    using raw = target.raw(transport);
    raw.socket.write(text(), "latin1");
    const received = await raw.ended;
    expect(statuses(received)).toEqual([status]);
    expect(received).toContain("content-type: application/problem+json");
    expect(await target.isUsable()).toBe(true);
  });

  test.each(refused)("is answered with a problem document, and reveals nothing: %s", async (_title, text, status) => {
    using raw = target.raw(transport);
    raw.socket.write(text(), "latin1");
    const received = await raw.until((heard) => heard.includes('"retryable"') && heard.endsWith("}"));
    expect(statuses(received)).toEqual([status]);
    expect(received).toContain("application/problem+json");
    expect(received).not.toMatch(/access-control-allow|"result"/i);
    expect(await target.isUsable()).toBe(true);
  });

  test("cannot bypass the body's limit: chunks are refused with 413 when they reach it", async () => {
    using raw = target.raw(transport);
    raw.socket.write(post(["transfer-encoding: chunked"], ""));
    const chunk = `100000\r\n${" ".repeat(1024 * 1024)}\r\n`;
    for (let i = 0; i < 17; i += 1) raw.socket.write(chunk);
    expect(statuses(await raw.until((heard) => heard.includes("too_large")))).toEqual([413]);
    expect(await target.isUsable()).toBe(true);
  });

  test("is ended with 408 if its chunks, trailers or body never end", async () => {
    await using hasty = await Target.start({ headersTimeoutMs: 1_500, requestTimeoutMs: 3_000 });
    const texts = [
      chunked("1\r\n{\r\n", hasty),
      chunked(`${goodCall.length.toString(16)}\r\n${goodCall}\r\n0\r\nx: y\r\n`, hasty),
      post(["content-length: 500"], goodCall, [json], hasty),
    ];
    const sockets = texts.map((text) => {
      const raw = hasty.raw(transport);
      raw.socket.write(text);
      return raw;
    });
    for (const { ended } of sockets) expect(statuses(await ended)).toEqual([408]);
  });

  test("that is longer than its length is two requests, the second of them invalid", async () => {
    using raw = target.raw(transport);
    raw.socket.write(post([length], `${goodCall}${goodCall}`));
    const received = await raw.ended;
    expect(statuses(received)).toEqual([200, 400]);
    expect(received.split('"result"')).toHaveLength(2);
  });

  test("of version 0.9, or 1.0 without a Host, gets nothing", async () => {
    for (const [text, status] of [
      ["GET /healthz\r\n\r\n", 403],
      [`GET /healthz HTTP/1.0\r\nauthorization: Bearer ${target.token}\r\n\r\n`, 403],
    ] as const) {
      using raw = target.raw(transport);
      raw.socket.write(text);
      expect(statuses(await raw.ended)).toEqual([status]);
    }
  });

  test("that is pipelined without limit is answered in order, with 503 above the limit", async () => {
    using raw = target.raw(transport);
    const count = 500;
    for (let i = 0; i < count; i += 1) raw.socket.write(post([length], goodCall));
    const received = await raw.until((heard) => statuses(heard).length === count);
    const others = statuses(received).filter((status) => status !== 200 && status !== 503);
    expect([others, statuses(received)[0]]).toEqual([[], 200]);
    expect(await target.isUsable()).toBe(true);
  });
});

test("hostile HTTP does not increase the daemon's memory", async () => {
  expect(await target.isUsable()).toBe(true);
  expect(await target.growth()).toBeLessThan(1.1);
});
