import { expect, test } from "vitest";
import { unnumberedFrame } from "../../../server/frames/frame.ts";
import { Journal } from "../../../server/log/journal.ts";
import { type Call, OpenCall, type Peer } from "../../../server/rpc/call.ts";
import { Grant } from "../../../server/rpc/grant.ts";
import { subscriptionHandlers } from "../../../server/rpc/handlers/subscription.ts";
import { memoryLog } from "../../helpers/logs.ts";
import { mainGrant } from "../../helpers/tokens.ts";

function world() {
  const sessions = new Map(
    ["a", "b", "c", "d"].map((sessionId) => {
      const journal = new Journal({ sessionId, epoch: "e", log: memoryLog() });
      const subscribe = journal.subscribe.bind(journal);
      return [sessionId, { journal, subscribe, unsubscribe: journal.unsubscribe.bind(journal) }] as const;
    }),
  );
  const registry = { get: (id: string) => sessions.get(id), find: (id: string) => sessions.get(id) };
  const handlers = subscriptionHandlers(registry as never, { maxSubscriptions: 4, maxSubscriptionsPerToken: 2 });
  const call = (grant: Grant, peer: Peer): Call => ({ grant, peer, signal: new AbortController().signal });
  return {
    close: (sessionId: string) => sessions.get(sessionId)?.journal.close(),
    subscribe: (sessionId: string, grant: Grant, peer: Peer) =>
      handlers["session/subscribe"]({ sessionId }, call(grant, peer)),
    unsubscribe: (sessionId: string, grant: Grant, peer: Peer) =>
      handlers["session/unsubscribe"]({ sessionId }, call(grant, peer)),
  };
}

test("with answers in order, what comes while a snapshot is taken is before the answer", async () => {
  const journal = new Journal({ sessionId: "a", epoch: "e", log: memoryLog() });
  const told: (number | string)[] = [];
  const one: Peer = {
    id: "one",
    gone: new AbortController().signal,
    send: ({ seq, bytes }) => void told.push(seq === 0 ? bytes.toString() : seq),
  };
  const record = (): void => journal.record(Buffer.from('{"type":"x"}'), 1, false);
  const snapshot = async () => {
    record();
    return { session: { cursor: journal.cursor } };
  };
  const session = { journal, snapshot, subscribe: journal.subscribe.bind(journal) };
  const limits = { maxSubscriptions: 1, maxSubscriptionsPerToken: 1 };
  const handlers = subscriptionHandlers({ get: () => session } as never, limits);
  const subscribe = async (params: { readonly inOrder?: boolean; readonly snapshot?: boolean }): Promise<void> => {
    const call = new OpenCall(one, mainGrant, true);
    await handlers["session/subscribe"]({ sessionId: "a", ...params }, call);
    record();
    call.takePlace()?.fill(unnumberedFrame(Buffer.from("answer")));
    for (const then of call.takeAnswered()) then();
  };
  await subscribe({ inOrder: true });
  await subscribe({ snapshot: true });
  expect(told).toEqual(["answer", 1, 2, "answer", 3]);
});

function peer(id: string): Peer & { leave(): void } {
  const gone = new AbortController();
  return { id, gone: gone.signal, send: () => {}, leave: () => gone.abort() };
}

const token = (name: string): Grant => new Grant({ name, capabilities: ["observe"] });
const full = (whose: string) => ({
  kind: "overloaded",
  message: expect.stringContaining(`subscriptions is the limit of ${whose}`),
});

test("a token's subscriptions are bounded over all its connections, and freed when they end in any way", async () => {
  const { subscribe, unsubscribe, close } = world();
  const [guest, one, other] = [token("guest"), peer("one"), peer("other")];
  await subscribe("a", guest, one);
  await subscribe("b", guest, other);
  await expect(subscribe("c", guest, one)).rejects.toMatchObject(full('the token "guest"'));
  // Changing one does not add one.
  await subscribe("a", guest, one);
  await unsubscribe("a", guest, one);
  await subscribe("c", guest, one);
  await expect(subscribe("a", guest, one)).rejects.toMatchObject(full('the token "guest"'));
  close("c");
  await subscribe("a", guest, one);
  // A closed session's subscription is not released twice.
  one.leave();
  await subscribe("d", guest, other);
  await expect(subscribe("a", guest, other)).rejects.toMatchObject(full('the token "guest"'));
  // A connection that has gone has none.
  other.leave();
  const late = peer("late");
  late.leave();
  for (const id of ["a", "b", "d"]) await subscribe(id, guest, late);
  const again = peer("again");
  await subscribe("a", guest, again);
  await subscribe("b", guest, again);
});

test("all named tokens together leave subscriptions to the main token", async () => {
  const { subscribe } = world();
  const [first, second] = [token("first"), token("second")];
  await subscribe("a", first, peer("1"));
  await subscribe("b", first, peer("2"));
  await subscribe("a", second, peer("3"));
  await expect(subscribe("b", second, peer("4"))).rejects.toMatchObject(full("all named tokens"));
  await subscribe("b", mainGrant, peer("5"));
  await expect(subscribe("c", mainGrant, peer("6"))).rejects.toMatchObject(full("all tokens"));
});
