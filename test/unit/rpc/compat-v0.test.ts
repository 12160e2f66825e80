import { pino } from "pino";
import { expect, test } from "vitest";
import { createValidator } from "../../../protocol/validation.ts";
import { type Frame, unnumberedFrame } from "../../../server/frames/frame.ts";
import type { Call, Peer } from "../../../server/rpc/call.ts";
import { compatDispatcher } from "../../../server/rpc/compat-v0.ts";
import { createDispatcher } from "../../../server/rpc/dispatcher.ts";
import { fakeCore } from "../../helpers/edge.ts";
import { mainGrant } from "../../helpers/tokens.ts";

const log = pino({ level: "silent" });
const sessionId = "01920000-0000-7000-8000-000000000002";

test("an event is translated once for all connections, and the time is attributed to their token", async () => {
  const subscribers: Peer[] = [];
  const { handlers } = fakeCore({
    "session/subscribe": (_params, { peer }: Call) => {
      if (peer !== undefined) subscribers.push(peer);
      return { cursor: 0 };
    },
  });
  const dispatcher = createDispatcher({ handlers, validator: createValidator(), log });
  const compat = compatDispatcher({ dispatcher, sessionId, log });
  const sent: Frame[] = [];
  for (const id of ["one", "other"]) {
    compat.converse({ id, gone: new AbortController().signal, send: (frame) => void sent.push(frame) }, mainGrant);
  }
  await expect.poll(() => subscribers.length).toBe(2);
  const before = compat.lane(mainGrant).usedMs;
  const event = { type: "turn_start" };
  const notify = (method: string) =>
    unnumberedFrame(Buffer.from(JSON.stringify({ jsonrpc: "2.0", method, params: { sessionId, event } })));
  for (const frame of [notify("session/event"), notify("session/updated")]) {
    for (const subscriber of subscribers) subscriber.send(frame);
  }
  expect(sent.map(({ bytes }) => JSON.parse(bytes.toString("utf8")))).toEqual(
    [1, 2].map(() => ({ jsonrpc: "2.0", method: "event", params: event })),
  );
  expect(sent[0]).toBe(sent[1]);
  expect(compat.lane(mainGrant).usedMs).toBeGreaterThan(before);
});
