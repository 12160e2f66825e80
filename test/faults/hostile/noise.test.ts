import { once } from "node:events";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { JsonlSplitter } from "../../../protocol/jsonl.ts";
import { patience } from "../../helpers/patience.ts";
import { closeOf, frame, framesOf } from "../../unit/edge/raw-web-socket.ts";
import { goodCall, Target, transports } from "./target.ts";

const seed = 20_261_121;

/** Cuts bytes at the given positions. */
function pieces(bytes: Buffer, places: readonly number[]): Buffer[] {
  const sorted = [0, ...places.map((place) => place % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  return sorted.slice(1).map((end, at) => bytes.subarray(sorted[at], end));
}

const places = fc.array(fc.nat({ max: 5_000 }), { maxLength: 12 });
const noise = fc.uint8Array({ maxLength: 300 }).map((bytes) => Buffer.from(bytes));

describe("the JSONL of a child", () => {
  const maxRecordBytes = 50;
  function split(chunks: readonly Buffer[]) {
    const records: string[] = [];
    const tooLong: (readonly [string, number])[] = [];
    const splitter = new JsonlSplitter({
      maxRecordBytes,
      onRecord: (record) => records.push(record.toString("latin1")),
      onOversize: (head, bytes) => tooLong.push([head.toString("latin1"), bytes]),
    });
    for (const chunk of chunks) splitter.push(chunk);
    return { records, tooLong, rest: splitter.rest()?.toString("latin1") };
  }

  test("yields the same records however noise is cut: each text between two LF, none lost and none repeated", () => {
    const byte = fc.oneof(fc.constantFrom(0x0a, 0x0d, 0x0a), fc.integer({ min: 0, max: 255 }));
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 400 }), places, (bytes, at) => {
        const stream = Buffer.from(bytes);
        const { records, tooLong, rest } = split(pieces(stream, at));
        const lines = stream.toString("latin1").split("\n");
        const last = lines.pop() ?? "";
        const long = lines.filter((line) => line.length > maxRecordBytes);
        const short = lines.filter((line) => line.length <= maxRecordBytes).map((line) => line.replace(/\r$/, ""));
        expect(records).toEqual(short.filter((line) => line !== ""));
        expect(tooLong.map(([, length]) => length)).toEqual(long.map((line) => line.length));
        for (const [i, [head]] of tooLong.entries()) expect(long[i]?.startsWith(head)).toBe(true);
        expect(rest ?? "").toBe(last.slice(0, 256));
      }),
      { seed, numRuns: 1_000 },
    );
  });
});

describe("noise at a daemon's sockets", () => {
  let target: Target;
  beforeAll(async () => {
    target = await Target.start({
      closeTimeoutMs: 100,
      headersTimeoutMs: 3_000,
      requestTimeoutMs: 5_000,
      pingIntervalMs: 600_000,
    });
  });
  afterAll(async () => await target[Symbol.asyncDispose]());

  /** Some of it looks like the beginning of a request. */
  const opening = fc.constantFrom(
    "",
    "GET ",
    "POST /v1/rpc HTTP/1.1\r\n",
    "GET / HTTP/1.1\r\nhost: ",
    "\r\n",
    "\u0016\u0003\u0001",
  );

  test.each(transports)(
    "of random bytes is answered with 400 or 408 and closed, or just closed, over %s",
    async (transport) => {
      await fc.assert(
        fc.asyncProperty(opening, noise, places, async (begin, bytes, at) => {
          using raw = target.raw(transport);
          for (const piece of pieces(Buffer.concat([Buffer.from(begin, "latin1"), bytes]), at)) raw.socket.write(piece);
          raw.socket.end();
          expect(await raw.ended).toMatch(/^$|^HTTP\/1\.1 (400|401|403|404|405|408|431) /);
        }),
        { seed, numRuns: 150 },
      );
      expect(await target.isUsable()).toBe(true);
    },
  );

  test.each(transports)("after a valid request never gets a second result, over %s", async (transport) => {
    const head = target.head("POST /v1/rpc", ["content-type: application/json", `content-length: ${goodCall.length}`]);
    await fc.assert(
      fc.asyncProperty(noise, places, async (bytes, at) => {
        using raw = target.raw(transport);
        for (const piece of pieces(Buffer.concat([Buffer.from(head + goodCall), bytes]), at)) raw.socket.write(piece);
        raw.socket.end();
        const received = await raw.ended;
        expect(received.split('"result"').length).toBeLessThanOrEqual(2);
        expect(received).not.toContain("internal_error");
      }),
      { seed, numRuns: 60 },
    );
    expect(await target.isUsable()).toBe(true);
  });

  test.each(transports)("instead of frames closes its connection with a code, over %s", async (transport) => {
    await fc.assert(
      fc.asyncProperty(noise, places, async (bytes, at) => {
        using raw = await target.rawWebSocket(transport);
        for (const piece of pieces(bytes, at)) raw.socket.write(piece);
        // After all that, in case it was frames or the beginning of one.
        raw.socket.end();
        const received = await raw.ended;
        const closed = closeOf(received);
        if (closed !== undefined) expect([1000, 1001, 1002, 1003, 1005, 1007, 1008, 1009]).toContain(closed.code);
        expect(received).not.toContain("internal_error");
      }),
      { seed, numRuns: 150 },
    );
    await vi.waitUntil(async () => (await target.connections()) === 1, patience);
  });

  test.each(transports)(
    "in valid frames is answered or closed, and so is a later valid frame, over %s",
    async (transport) => {
      const json = fc.oneof(
        fc.json(),
        fc.string(),
        fc.json().map((some) => `{"jsonrpc":"2.0","id":1,"method":"daemon/info","params":${some}}`),
      );
      using raw = await target.rawWebSocket(transport);
      raw.socket.setNoDelay(true);
      let last = 0;
      await fc.assert(
        fc.asyncProperty(json, places, async (some, at) => {
          last += 1;
          const call = `{"jsonrpc":"2.0","id":"run-${last}","method":"daemon/info"}`;
          for (const piece of pieces(Buffer.concat([frame(some), frame(call)]), at)) raw.socket.write(piece);
          const received = await raw.until((heard) => heard.includes(`"run-${last}"`));
          expect(received).not.toContain("internal_error");
        }),
        { seed, numRuns: 100 },
      );
      expect(framesOf(await raw.until(() => true)).length).toBeGreaterThanOrEqual(last);
    },
  );

  test("does not increase the daemon's memory", async () => {
    const idle = target.raw();
    await once(idle.socket, "connect");
    idle.socket.destroy();
    expect(await target.isUsable()).toBe(true);
    expect(await target.growth()).toBeLessThan(1.1);
  });
});
