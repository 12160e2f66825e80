import { pino } from "pino";
import { expect, test } from "vitest";
import { createValidator } from "../../../protocol/validation.ts";
import type { Frame } from "../../../server/frames/frame.ts";
import { Journal } from "../../../server/log/journal.ts";
import type { Call, Peer } from "../../../server/rpc/call.ts";
import { compatDispatcher } from "../../../server/rpc/compat-v0.ts";
import { createDispatcher, type Dispatcher } from "../../../server/rpc/dispatcher.ts";
import { attribution } from "../../../server/rpc/governance.ts";
import { fakeCore } from "../../helpers/edge.ts";
import { memoryLog } from "../../helpers/logs.ts";

const sessionId = "01920000-0000-7000-8000-000000000002";
const params = { sessionId, after: 0 };
const log = pino({ level: "silent" });

/** A journal with one event, with a dispatcher in which every call has a client. */
function start() {
  const journal = new Journal({ sessionId, epoch: "e", log: memoryLog({ sessionId }) });
  const event = (type: string) => journal.record(Buffer.from(JSON.stringify({ type })), 1, false);
  event("before");
  const core = fakeCore({
    "session/subscribe": (given, call: Call) => {
      const { after } = given as { readonly after?: number };
      const whenAnswered = call.whenAnswered?.bind(call);
      return { cursor: journal.subscribe(call.peer as Peer, { after, whenAnswered }), epoch: "e" };
    },
  });
  const policies = [attribution(() => ({ clientId: "client-1" }))];
  const dispatcher = createDispatcher({ handlers: core.handlers, policies, validator: createValidator(), log });
  return { dispatcher, event };
}

/** Records the messages that a peer gets, in order. */
function converse(dispatcher: Dispatcher) {
  const got: string[] = [];
  const waiting: (() => void)[] = [];
  const send = ({ bytes }: Frame): void => {
    const { method, params } = JSON.parse(bytes.toString("utf8"));
    got.push(`${method} ${(params.event ?? params).type}`);
    for (const resolve of waiting) resolve();
  };
  const peer: Peer = { id: "peer", gone: new AbortController().signal, send };
  const some = (count: number): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => void (got.length >= count && resolve());
      waiting.push(check);
      check();
    });
  return { conversation: dispatcher.converse(peer, undefined), got, some };
}

test("a replay comes after the answer of an attributed call", async () => {
  const { dispatcher, event } = start();
  const { conversation, got, some } = converse(dispatcher);
  const text = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session/subscribe", params }));
  expect(await conversation.receive(text)).toMatchObject({ result: { cursor: 1 } });
  got.push("answer");
  event("after");
  await some(3);
  expect(got).toEqual(["answer", "session/event before", "session/event after"]);
});

test("a replay comes after the answer of a call that was made in the process", async () => {
  const { dispatcher, event } = start();
  const { conversation, got, some } = converse(dispatcher);
  expect(await conversation.call("session/subscribe", params)).toMatchObject({ result: { cursor: 1 } });
  got.push("answer");
  event("after");
  await some(3);
  expect(got).toEqual(["answer", "session/event before", "session/event after"]);
});

test("the place of an answer is left empty if the caller in the process, or no caller, gets it", async () => {
  const filled: unknown[] = [];
  const core = fakeCore({
    "session/get": (_params, { answerAt }: Call) => answerAt?.({ fill: (answer) => filled.push(answer) }),
  });
  const policies = [attribution(() => ({ clientId: "client-1" }))];
  const dispatcher = createDispatcher({ handlers: core.handlers, policies, validator: createValidator(), log });
  const { conversation } = converse(dispatcher);
  await conversation.call("session/get", { sessionId });
  expect(filled).toEqual([undefined]);
  const told = { jsonrpc: "2.0", method: "session/get", params: { sessionId } };
  const given: unknown[] = [];
  await conversation.receive(Buffer.from(JSON.stringify([told, told])), (answer, place) => {
    given.push(answer);
    place?.fill(undefined);
  });
  expect([given, filled]).toEqual([[undefined], [undefined, undefined, undefined]]);
});

test("the other hosts' dialect gets events once it is connected", async () => {
  const { dispatcher, event } = start();
  const { conversation, got, some } = converse(compatDispatcher({ dispatcher, sessionId, log }));
  await conversation.receive(Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "unknown" })));
  event("after");
  await some(1);
  expect(got).toEqual(["event after"]);
});
