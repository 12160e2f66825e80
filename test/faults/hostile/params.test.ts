import fc from "fast-check";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { errorCatalogue } from "../../../protocol/errors.ts";
import { type MethodName, methods } from "../../../protocol/methods.ts";
import { createValidator } from "../../../protocol/validation.ts";
import type { Handlers } from "../../../server/rpc/call.ts";
import { createDispatcher } from "../../../server/rpc/dispatcher.ts";
import type { TestWebSocket } from "../../helpers/edge.ts";
import type { Unchecked } from "../../helpers/unchecked.ts";
import { brokenParams, goodParams } from "./schemas.ts";
import { Target } from "./target.ts";

const seed = 20_261_121;
const names = Object.keys(methods) as MethodName[];
const catalogue = Object.keys(errorCatalogue);

function check(answer: Unchecked): void {
  expect(answer.id).toBe(1);
  if ("result" in answer) return;
  expect(catalogue).toContain(answer.error.data.name);
  expect([answer.error.data.name, answer.error]).not.toEqual(["internal_error", answer.error]);
  expect(JSON.stringify(answer).length).toBeLessThan(20_000);
}

describe("params that are invalid in one place", () => {
  const fake = Object.fromEntries(names.map((name) => [name, () => ({})])) as unknown as Handlers;
  const dispatcher = createDispatcher({
    handlers: fake,
    validator: createValidator(),
    log: pino({ level: "silent" }),
  });
  const say = (method: MethodName, params: unknown) =>
    dispatcher
      .converse(undefined, undefined)
      .receive(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params })));

  test.each(names)("of %s are refused by name or accepted, and valid ones are accepted", async (method) => {
    await fc.assert(
      fc.asyncProperty(goodParams(method), async (params) => {
        expect(await say(method, params)).toEqual({ jsonrpc: "2.0", id: 1, result: {} });
      }),
      { seed, numRuns: 20 },
    );
    await fc.assert(
      fc.asyncProperty(brokenParams(method), async (params) => check(await say(method, params))),
      { seed, numRuns: 100 },
    );
  });
});

describe("params that are broken in one place, at a daemon", () => {
  let target: Target;
  let webSocket: TestWebSocket;
  beforeAll(async () => {
    target = await Target.start();
    webSocket = await target.webSocket();
    // Each schema is compiled at its first use, and kept.
    for (const method of names) {
      for (const params of fc.sample(brokenParams(method), { seed: seed + 1, numRuns: 10 })) await call(method, params);
    }
    await target.settle();
  });
  afterAll(async () => {
    await webSocket[Symbol.asyncDispose]();
    await target[Symbol.asyncDispose]();
  });

  /** The answer, without the notifications that the daemon sends after a `daemon/subscribe`. */
  async function call(method: string, params: unknown) {
    webSocket.send({ jsonrpc: "2.0", id: 1, method, params });
    for (;;) {
      const message = await webSocket.next();
      if (message.method === undefined) return message;
    }
  }

  test.each(names)("of %s are answered by name", async (method) => {
    await fc.assert(
      fc.asyncProperty(brokenParams(method), async (params) => {
        check(await call(method, params));
      }),
      { seed, numRuns: 30 },
    );
    expect(await target.isUsable()).toBe(true);
  });

  test("do not increase the daemon's memory", async () => {
    expect(await target.growth()).toBeLessThan(1.1);
  });
});
