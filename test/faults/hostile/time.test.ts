import type { Socket } from "node:net";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { patience } from "../../helpers/patience.ts";
import type { RawSocket } from "../../unit/edge/raw-socket.ts";
import { closeOf, frame } from "../../unit/edge/raw-web-socket.ts";
import { goodCall, Target, transports } from "./target.ts";

const limits = {
  headersTimeoutMs: 1_500,
  requestTimeoutMs: 3_000,
  closeTimeoutMs: 100,
  pingIntervalMs: 600_000,
  maxConnections: 1_010,
};

let target: Target;
let calm: number;
/** The measurements: how many times longer a call of the well-behaved client takes during each attack. */
const medians: string[] = [];
beforeAll(async () => {
  target = await Target.start(limits);
  // Node keeps up to 1,000 HTTP parsers for the next sockets.
  const first = Array.from({ length: 1_000 }, () => target.raw());
  for (const { socket } of first) socket.write("G");
  await Promise.all(first.map(({ ended }) => ended));
  await target.settle();
  for (let i = 0; i < 50; i += 1) await target.isUsable();
  calm = target.latency();
});
afterAll(async () => await target[Symbol.asyncDispose]());

/** Has the well-behaved client call without a pause during an attack; each of its calls must succeed. */
async function beside(happening: Promise<unknown>): Promise<void> {
  target.latency();
  let goesOn = true;
  const over = happening.finally(() => {
    goesOn = false;
  });
  while (goesOn) expect(await target.isUsable()).toBe(true);
  await over;
  tell();
}

/** Resolves when it is connected. A connection that the system refuses never is. */
const connected = (socket: Socket): Promise<unknown> => new Promise((resolve) => socket.once("ready", resolve));

/** Records how long the calls since the last record have taken. */
function tell(): void {
  const title = expect.getState().currentTestName?.split("not taken by ")[1];
  medians.push(`${(target.latency() / calm).toFixed(1)} beside ${title?.split(/[:;]/)[0]}`);
}

function expectEnds(received: readonly string[]): void {
  expect(received.filter((text) => !/^$|^HTTP\/1\.1 408 /.test(text))).toEqual([]);
}

const json = ["content-type: application/json", "content-length: 5000"];

describe("the time of other clients", () => {
  test.each([
    ["heads", () => `${target.head("POST /v1/rpc", json).slice(0, -2)}x: `],
    ["bodies", () => target.head("POST /v1/rpc", json)],
    ["upgrades", () => `${target.upgradeHead().slice(0, -2)}x: `],
  ])("is not taken by 200 clients whose %s come a byte at a time: each is ended with 408", async (_what, text) => {
    const sockets = Array.from({ length: 200 }, (_, at) => target.raw(transports[at % 2]));
    for (const { socket } of sockets) socket.write(text());
    const write = (): void => {
      for (const { socket } of sockets) if (socket.writable && socket.bytesRead === 0) socket.write(" ");
    };
    // After what has arrived was read: writing to a connection that was reset discards its answer.
    const drip = setInterval(() => setImmediate(write), 25);
    try {
      const ends = Promise.all(sockets.map(({ ended }) => ended));
      await beside(ends);
      // When TCP resets a connection that is still written to, the answer can be lost.
      expectEnds(await ends);
      expect((await ends).filter((received) => received.includes("408")).length).toBeGreaterThan(100);
    } finally {
      clearInterval(drip);
    }
  });

  test("is not taken by 10,000 unfinished handshakes: those above the limit are closed immediately", async () => {
    const heads = ["", target.upgradeHead().slice(0, 40), target.upgradeHead().slice(0, -2)];
    const left: RawSocket[] = [];
    const batch = async (): Promise<void> => {
      const sockets = Array.from({ length: 500 }, (_, at) => target.raw(transports[at % 2]));
      // Nothing at all, a part of the head, everything except its end.
      for (const [at, { socket }] of sockets.entries()) socket.write(heads[at % heads.length] ?? "");
      await Promise.all(sockets.map(({ socket, ended }) => Promise.race([connected(socket), ended])));
      // Half of them stay until the daemon ends them.
      for (const { socket } of sockets.slice(250)) socket.destroy();
      left.push(...sockets.slice(0, 250));
    };
    const batches = async (): Promise<void> => {
      for (let at = 0; at < 20; at += 1) {
        await batch();
        if (left.length >= 2_000) expectEnds(await Promise.all(left.splice(0, 1_000).map(({ ended }) => ended)));
      }
    };
    await beside(batches());
    expectEnds(await Promise.all(left.map(({ ended }) => ended)));
  });

  test("is not taken by 1,000 silent connections; those above the limit are refused with 503", async () => {
    const sockets: RawSocket[] = [];
    const open = async (): Promise<void> => {
      while (sockets.length < 1_000) {
        const more = Array.from({ length: 50 }, (_, at) => target.rawWebSocket(transports[at % 2]));
        sockets.push(...(await Promise.all(more)));
      }
    };
    await beside(open());
    expect(await target.connections()).toBe(1_001);
    for (let i = 0; i < 50; i += 1) expect(await target.isUsable()).toBe(true);
    tell();
    const beyond = await Promise.all(Array.from({ length: 20 }, () => target.rawWebSocket()));
    const refused = await Promise.all(beyond.map(({ until }) => until((heard) => /101|"retryable"/.test(heard))));
    expect(refused.filter((text) => text.includes("HTTP/1.1 503 ") && text.includes("overloaded"))).toHaveLength(11);
    for (const { socket } of [...sockets, ...beyond]) socket.destroy();
    await vi.waitUntil(async () => (await target.connections()) === 1, patience);
  });

  test("is not taken by connections that send requests and never read: each is eventually closed", async () => {
    const limited = await Target.start({ ...limits, slowReaderDeadlineMs: 300, maxBufferedBytes: 8 * 1024 * 1024 });
    try {
      const asks = '{"jsonrpc":"2.0","id":1,"method":"rpc.discover"}';
      const framed = Buffer.concat(Array.from({ length: 20 }, () => frame(asks)));
      const post = `${limited.head("POST /v1/rpc", [json[0] ?? "", `content-length: ${asks.length}`])}${asks}`;
      const sockets: RawSocket[] = [];
      for (const transport of transports) {
        const webSocket = await limited.rawWebSocket(transport);
        const http = limited.raw(transport);
        for (const { socket } of [webSocket, http]) socket.pause();
        webSocket.socket.write(framed);
        http.socket.write(post.repeat(20));
        sockets.push(webSocket, http);
      }
      await vi.waitUntil(async () => (await limited.connections()) === 1, patience);
      expect(await limited.isUsable()).toBe(true);
      // Two requests that are ended for being slow mark the end.
      for (let i = 0; i < 2; i += 1) {
        using slow = limited.raw();
        slow.socket.write(limited.head("POST /v1/rpc", json));
        expect(await slow.ended).toMatch(/^HTTP\/1\.1 408 /);
      }
      expect(await limited.growth()).toBeLessThan(1.1);
      for (const { socket } of sockets) socket.resume();
      for (const { ended } of sockets) expect((await ended).split('"jsonrpc"').length).toBeLessThan(20);
    } finally {
      await limited[Symbol.asyncDispose]();
    }
  });

  test("is not taken by half-open peers: one that answers no ping is ended, and one that has ended its half too", async () => {
    const pinging = await Target.start({ ...limits, pingIntervalMs: 3_000 });
    try {
      const silent = await Promise.all(transports.map((transport) => pinging.rawWebSocket(transport)));
      const half = await Promise.all(transports.map((transport) => pinging.rawWebSocket(transport)));
      for (const { socket } of half) socket.end();
      await Promise.all([...silent, ...half].map(({ ended }) => ended));
      expect(closeOf(await (silent[0] as RawSocket).ended)).toBeUndefined();
      await vi.waitUntil(async () => (await pinging.connections()) === 1, patience);
      expect(await pinging.isUsable()).toBe(true);
      // A request whose sender has ended its half still gets its answer.
      for (const transport of transports) {
        using raw = pinging.raw(transport);
        raw.socket.end(
          `${pinging.head("POST /v1/rpc", [json[0] ?? "", `content-length: ${goodCall.length}`])}${goodCall}`,
        );
        expect(await raw.ended).toContain('"result"');
      }
    } finally {
      await pinging[Symbol.asyncDispose]();
    }
  });

  test("leaves nothing in the daemon's memory, and the measurements are reported", async ({ annotate }) => {
    expect(await target.isUsable()).toBe(true);
    expect(await target.growth()).toBeLessThan(1.1);
    await annotate(`a good client's call took so many times as long: ${medians.join("; ")}`);
  });
});
