import { pino } from "pino";
import { expect, test } from "vitest";
import type { Params } from "../../../protocol/methods.ts";
import { createValidator } from "../../../protocol/validation.ts";
import type { RpcResponse } from "../../../protocol/wire.ts";
import type { Call } from "../../../server/rpc/call.ts";
import {
  callBytes,
  createDispatcher,
  type DispatcherLimits,
  type DispatcherOptions,
} from "../../../server/rpc/dispatcher.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import { sessionHandlers } from "../../../server/rpc/handlers/session.ts";
import { fakeCore } from "../../helpers/edge.ts";
import { mainGrant } from "../../helpers/tokens.ts";

const token = (name: string): Grant => new Grant({ name, capabilities: ["observe"] });
const deliveryId = crypto.randomUUID();

function dispatcher(handlers: Parameters<typeof fakeCore>[0], limits: Partial<DispatcherLimits> = {}) {
  const options: DispatcherOptions = {
    handlers: fakeCore(handlers).handlers,
    validator: createValidator(),
    log: pino({ level: "silent" }),
    limits,
  };
  const { converse, lane } = createDispatcher(options);
  return { converse: (grant: Grant | undefined) => converse(undefined, grant), lane };
}

function text(method: string, params: object = {}, id = 1): string {
  return JSON.stringify({ jsonrpc: "2.0", id, method, params });
}

const nameOf = (answer: unknown): unknown => (answer as { error?: { data: object } }).error?.data;
const overloaded = { name: "overloaded", retryable: true, retryAfterMs: expect.any(Number) };

test("waiting calls count with a fixed cost: a token's share is bounded over all its connections, and the main token has its own", async () => {
  // Capacity for ten calls, seven of named tokens, four of each.
  const { converse } = dispatcher({}, { maxCallBytes: 10.5 * callBytes, maxCallBytesPerToken: 4.5 * callBytes });
  const [guest, other] = [token("guest"), token("other")];
  const wait = Buffer.from(text("delivery/wait", { deliveryId }));
  const all: { end(): void }[] = [];
  const waits: Promise<unknown>[] = [];
  const begin = (grant: Grant): Promise<unknown> => {
    const conversation = converse(grant);
    all.push(conversation);
    const answer = conversation.receive(wait);
    waits.push(answer);
    return answer;
  };
  for (let n = 0; n < 4; n += 1) void begin(guest);
  const refused = await begin(guest);
  expect(nameOf(refused)).toEqual(overloaded);
  expect(refused).toMatchObject({ error: { message: expect.stringContaining('the token "guest"') } });
  // A batch and a call by an HTTP path are not exceptions.
  const batch = await converse(guest).receive(Buffer.from(`[${text("delivery/wait", { deliveryId })}]`));
  expect(nameOf(batch) ?? nameOf((batch as RpcResponse[])[0])).toEqual(overloaded);
  expect(nameOf(await converse(guest).call("delivery/wait", { deliveryId }))).toEqual(overloaded);
  for (let n = 0; n < 3; n += 1) void begin(other);
  expect(await begin(other)).toMatchObject({ error: { message: expect.stringContaining("all named tokens") } });
  expect(await converse(mainGrant).receive(Buffer.from(text("session/list")))).toMatchObject({ result: {} });
  // Each call of a batch counts.
  const three = Array.from({ length: 3 }, (_, id) => text("delivery/wait", { deliveryId }, id));
  const main = converse(mainGrant);
  const waiting = main.receive(Buffer.from(`[${three.join(",")}]`));
  main.end();
  expect((await waiting) as readonly RpcResponse[]).toHaveLength(3);
  // Capacity is free again when calls have ended.
  for (const conversation of all) conversation.end();
  await Promise.all(waits);
  expect(await converse(guest).receive(Buffer.from(text("session/list")))).toMatchObject({ result: {} });
});

test("a batch runs in slices: another token's call is answered between its calls", async () => {
  let made = 0;
  const slow = () => {
    for (const until = performance.now() + 2; performance.now() < until; );
    made += 1;
    return { sessions: [] };
  };
  const { converse } = dispatcher({ "session/list": slow });
  const requests = Array.from({ length: 50 }, (_, id) => text("session/list", {}, id));
  let isDone = false;
  const busy = converse(token("busy"));
  const batch = busy.receive(Buffer.from(`[${requests.join(",")}]`)).finally(() => {
    isDone = true;
  });
  // The peer's next message waits for its turn.
  const later = busy.receive(Buffer.from(text("daemon/info")));
  const quiet = converse(token("quiet"));
  expect(await quiet.receive(Buffer.from(text("daemon/info")))).toMatchObject({ result: { pid: 1 } });
  expect([isDone, made < 50]).toEqual([false, true]);
  expect(await later).toMatchObject({ result: { pid: 1 } });
  // In the order of arrival.
  expect(made).toBe(50);
  expect(((await batch) as readonly RpcResponse[]).map(({ id }) => id)).toEqual(requests.map((_, id) => id));
});

test("an answer is written in its token's turn, and before later messages", async () => {
  const order: string[] = [];
  const { converse, lane } = dispatcher({
    "session/list": async (_params, call) => {
      call.whenAnswered?.(() => order.push("afterwards"));
      return { sessions: [] };
    },
  });
  const busy = token("busy");
  const answering = converse(busy).receive(Buffer.from(text("session/list")), () => order.push("given"));
  // The token uses its slice before the answer exists.
  lane(busy).count(() => {
    for (const until = performance.now() + 2; performance.now() < until; );
  });
  const behind = lane(busy).pass(() => order.push("behind"));
  await answering;
  await behind;
  await new Promise((resolve) => setImmediate(resolve));
  expect(order).toEqual(["given", "behind", "afterwards"]);
});

test("a call that is refused for its token's share is answered in the token's turn", async () => {
  const { converse, lane } = dispatcher({}, { maxCallBytesPerToken: 1.5 * callBytes });
  const busy = token("busy");
  const wait = Buffer.from(text("delivery/wait", { deliveryId }));
  const first = converse(busy);
  const waiting = first.receive(wait);
  lane(busy).count(() => {
    for (const until = performance.now() + 2; performance.now() < until; );
  });
  let refused: unknown;
  const answering = converse(busy).receive(wait, (answer) => {
    refused = answer;
  });
  expect(refused).toBeUndefined();
  await answering;
  expect(nameOf(refused)).toEqual(overloaded);
  first.end();
  await waiting;
});

test("a token's listings of files run one at a time, and do not wait for those of another token", async () => {
  const begun: PromiseWithResolvers<void>[] = [];
  const registry = {
    all: () => [],
    files: {
      stored: async () => {
        const listing = Promise.withResolvers<void>();
        begun.push(listing);
        await listing.promise;
        return { sessions: [] };
      },
      firstMessages: async () => [],
    },
  };
  const list = sessionHandlers(registry as never, {} as never)["session/list"];
  const params: Params<"session/list"> = { stored: true };
  const [busy, quiet] = [token("busy"), token("quiet")];
  const left = new AbortController();
  const call = (grant: Grant, signal = new AbortController().signal): Call => ({ grant, signal });
  const first = list(params, call(busy));
  const second = list(params, call(busy));
  const third = list(params, call(busy, left.signal));
  const others = list(params, call(quiet));
  await expect.poll(() => begun.length).toBe(2);
  left.abort(new Error("left"));
  await expect(third).rejects.toThrow("left");
  for (const { resolve } of begun) resolve();
  await Promise.all([first, others]);
  await expect.poll(() => begun.length).toBe(3);
  begun[2]?.resolve();
  expect(await second).toMatchObject({ stored: { sessions: [] } });
});
