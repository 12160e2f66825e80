import { existsSync, writeFileSync } from "node:fs";
import { expect, test, vi } from "vitest";
import { LeftSessions, type OnDetach } from "../../../server/session/left-sessions.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Core, startCore } from "../../helpers/core.ts";
import { patience } from "../../helpers/patience.ts";

const message = `${JSON.stringify({ type: "message", id: "a", parentId: null, message: { role: "user", content: "Hi." } })}\n`;

/** A subscriber, and the end of its connection. */
function subscriber(id: string) {
  const gone = new AbortController();
  return { id, gone: gone.signal, send: () => {}, leave: () => gone.abort() };
}

function watched(core: Core, session: Session, graceMs: number, onDetach?: OnDetach): LeftSessions {
  const onFault = (error: unknown): void => {
    throw error;
  };
  const left = new LeftSessions({
    close: ({ sessionId }) => core.registry.close(sessionId),
    graceMs,
    onDetach,
    onFault,
  });
  left.watch(session);
  return left;
}

/** Resolves when a session that was left now is closed: those that were left before it have been looked at. */
async function looked(core: Core, graceMs?: number): Promise<void> {
  const witness = await core.registry.create({ cwd: core.cwd, ...(graceMs === undefined && { whenLeft: "close" }) });
  if (graceMs !== undefined) watched(core, witness, graceMs);
  const one = subscriber("one");
  witness.subscribe(one);
  if (graceMs === undefined) witness.unsubscribe(one.id);
  else one.leave();
  await vi.waitFor(() => expect(core.registry.find(witness.sessionId)).toBeUndefined(), patience);
}

test("a session without a message is closed when its last subscriber has unsubscribed", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd, whenLeft: "close" });
  const [one, other] = [subscriber("one"), subscriber("other")];
  session.subscribe(one);
  session.subscribe(other);
  session.unsubscribe(one.id);
  await looked(core);
  expect(core.registry.find(session.sessionId)).toBe(session);
  session.unsubscribe(other.id);
  await vi.waitFor(() => expect(core.registry.find(session.sessionId)).toBeUndefined(), patience);
  await vi.waitFor(() => expect(existsSync(session.file)).toBe(false), patience);
});

test("a session without the option stays, and so does one with a message, one at work and one with another subscriber", async () => {
  await using core = await startCore();
  const plain = await core.registry.create({ cwd: core.cwd });
  const used = await core.registry.create({ cwd: core.cwd, whenLeft: "close" });
  const shared = await core.registry.create({ cwd: core.cwd, whenLeft: "close" });
  const busy = await core.registry.create({ cwd: core.cwd, whenLeft: "close" });
  writeFileSync(used.file, message, { flag: "a" });
  for (const session of [plain, used, shared, busy]) session.subscribe(subscriber("one"));
  shared.subscribe(subscriber("other"));
  const turn = Promise.withResolvers<void>();
  const working = busy.scope.run(() => turn.promise);
  for (const session of [plain, used, shared, busy]) session.unsubscribe("one");
  await looked(core);
  for (const session of [plain, used, shared, busy]) expect(core.registry.find(session.sessionId)).toBe(session);
  // It is looked at again when its work has ended.
  turn.resolve();
  await working;
  await vi.waitFor(() => expect(core.registry.find(busy.sessionId)).toBeUndefined(), patience);
});

test("a session to which nobody subscribes is closed, too", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd });
  watched(core, session, 20);
  await vi.waitFor(() => expect(core.registry.find(session.sessionId)).toBeUndefined(), patience);
});

test("after a lost connection it waits, and somebody who comes back keeps it", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd });
  watched(core, session, 1_000);
  const first = subscriber("first");
  session.subscribe(first);
  first.leave();
  const second = subscriber("second");
  session.subscribe(second);
  await looked(core, 1_000);
  expect(core.registry.find(session.sessionId)).toBe(session);
  second.leave();
  await vi.waitFor(() => expect(core.registry.find(session.sessionId)).toBeUndefined(), patience);
});

test("an ephemeral session is closed, whatever is in it", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd, ephemeral: true, whenLeft: "close" });
  const one = subscriber("one");
  session.subscribe(one);
  const turn = Promise.withResolvers<void>();
  const working = session.scope.run(() => turn.promise);
  session.unsubscribe(one.id);
  await vi.waitFor(() => expect(core.registry.find(session.sessionId)).toBeUndefined(), patience);
  turn.resolve();
  await working.catch(() => {});
});

test("the run of a session that was left goes on, is aborted, or ends with the session, as the configuration says", async () => {
  await using core = await startCore();
  core.behave("keep-running");
  const running = async (onDetach: OnDetach): Promise<Session> => {
    const session = await core.registry.create({ cwd: core.cwd });
    writeFileSync(session.file, message, { flag: "a" });
    watched(core, session, 20, onDetach);
    const one = subscriber("one");
    session.subscribe(one);
    await session.prompting.prompt({ text: "Hi.", ifRunning: "refuse" });
    expect(session.runId).toBeDefined();
    one.leave();
    return session;
  };
  const [kept, aborted, closed] = [await running("keep"), await running("abort"), await running("close")];
  await vi.waitFor(() => expect(core.registry.find(closed.sessionId)).toBeUndefined(), patience);
  await vi.waitFor(() => expect(aborted.runId).toBeUndefined(), patience);
  expect(core.registry.find(aborted.sessionId)).toBe(aborted);
  expect(existsSync(closed.file)).toBe(true);
  expect(kept.runId).toBeDefined();
});
