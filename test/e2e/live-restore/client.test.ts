import { expect, test } from "vitest";
import type { Client, ConnectionEvent, SessionHandle } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, delayed, hold } from "../../../provider/reply.ts";
import type { Step } from "../../../provider/script.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { RestoreStage } from "../../helpers/restore-stage.ts";

// What a program sees that uses the client library while a daemon is killed and the next one starts.

const words = (from: number, count: number): string[] => Array.from({ length: count }, (_, n) => `word${from + n} `);

interface Turn extends AsyncDisposable {
  readonly stage: RestoreStage;
  readonly client: Client;
  readonly session: SessionHandle;
  readonly pid: number;
}

async function begin(...script: readonly Step[]): Promise<Turn> {
  const stage = await RestoreStage.open({ pi: piUnderTest(), provider: { script }, extensions: ["asking"] });
  try {
    const client = await stage.client();
    const session = await client.createSession({ cwd: stage.cwd, model: "scripted/model-1" });
    const { pid } = session.info ?? {};
    return { stage, client, session, pid: pid as number, [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose]() };
  } catch (error) {
    await stage[Symbol.asyncDispose]();
    throw error;
  }
}

/** Kills the daemon `times` times, the later ones while they start, and resolves when the client is connected again. */
async function replace({ stage, client }: Turn, times = 1): Promise<ConnectionEvent> {
  const connected = Promise.withResolvers<ConnectionEvent>();
  const off = client.onConnection((event) => {
    if (event.kind === "connected") connected.resolve(event);
  });
  await stage.kill();
  for (let n = 1; n < times; n += 1) await stage.startAndKill(300 * n);
  await stage.start();
  const event = await connected.promise;
  off();
  return event;
}

test("a stream of events has no gap and nothing twice, and every delta of the answer", async () => {
  const gates = [new Gate(), new Gate(), new Gate()] as const;
  await using turn = await begin(
    answer(...words(0, 500), hold(gates[0]), ...words(500, 500), hold(gates[1]), ...words(1_000, 500), hold(gates[2])),
  );
  const { session } = turn;
  // Without `onGap` a gap ends the stream with an error.
  await using events = session.events();
  await events.ready;
  const seqs: number[] = [];
  const types: string[] = [];
  let text = "";
  const reading = (async () => {
    for await (const { seq, firstSeq = seq, event } of events) {
      for (let each = firstSeq; each <= seq; each += 1) seqs.push(each);
      // Only newer versions of pi report the system's message.
      const { role } = (event["message"] ?? {}) as { readonly role?: string };
      if (role !== "system") types.push(event.type);
      if (event.type === "message_update") {
        const { type, delta } = event["assistantMessageEvent"] as { readonly type: string; readonly delta?: string };
        if (type === "text_delta") text += delta;
      }
      if (event.type === "agent_settled") return;
    }
  })();
  reading.catch(() => {});
  const prompted = session.prompt("Count.");
  const run = prompted.settled();
  run.catch(() => {});
  await gates[0].reached;
  const { pid } = turn;
  const cursor = (await session.get()).cursor;
  expect(await replace(turn)).toEqual({ kind: "connected", daemon: "another" });
  // On a loaded machine pi answers the next daemon late.
  await expect.poll(() => session.get()).toMatchObject({ pid, state: "running" });
  expect((await session.get()).cursor).toBeGreaterThanOrEqual(cursor);
  // The daemon dies while pi writes, and the next ones while they restore.
  gates[0].open();
  await replace(turn, 3);
  gates[1].open();
  await gates[2].reached;
  await turn.stage.replace(() => gates[2].open());
  expect(await run).toMatchObject({ outcome: "settled", state: "inserted" });
  await reading;
  expect(text).toBe(words(0, 1_500).join(""));
  expect(seqs).toEqual([...new Set(seqs)].sort((a, b) => a - b));
  expect(types.filter((type) => type.startsWith("agent_"))).toEqual(["agent_start", "agent_end", "agent_settled"]);
  expect(turn.stage.provider.requests).toHaveLength(1);
});

test("the promises of a push resolve, each with the state in the same request", async () => {
  const gate = new Gate();
  await using turn = await begin(delayed(hold(gate), answer("Good.")));
  const { session, stage } = turn;
  const delivery = session.push({ customType: "note", content: "Only once." });
  const { delivered, answered } = delivery;
  const states: string[] = [];
  const updates = (async () => {
    for await (const { state } of delivery.updates()) states.push(state);
  })();
  await delivery.prepared;
  await gate.reached;
  await replace(turn);
  gate.open();
  expect((await delivered).history.map(({ state }) => state)).not.toContain("parked");
  expect(await answered).toMatchObject({ state: "answered", attempts: [{ n: 1, outcome: "delivered", status: 200 }] });
  expect((await answered).redelivered).toBeUndefined();
  await updates;
  expect(states.filter((state, n) => states.indexOf(state) !== n)).toEqual([]);
  expect(stage.provider.requests.map((request) => request.countText("Only once.", { roles: ["user"] }))).toEqual([1]);
});

test("a push whose answer may be lost with its daemon is delivered once", async () => {
  await using turn = await begin();
  const { session, stage } = turn;
  for (const [n, isAccepted] of [false, true, false].entries()) {
    const content = `Push ${n}.`;
    const before = stage.provider.requests.length;
    const delivery = session.push({ customType: "note", content });
    if (isAccepted) await delivery.accepted;
    await replace(turn);
    expect(await delivery.answered).toMatchObject({ state: "answered" });
    await session.waitForIdle();
    expect(
      stage.provider.requests.slice(before).map((request) => request.countText(content, { roles: ["user"] })),
    ).toEqual([1]);
  }
  expect(await session.get()).toMatchObject({ pid: turn.pid, generation: 1 });
});

test("a dialog stays open under its id, and the handler's answer reaches the extension", async () => {
  await using turn = await begin(answer(call("bash", { command: "echo ask-first" })), answer("Done."));
  const { session, stage } = turn;
  const asked: string[] = [];
  const signals: AbortSignal[] = [];
  const opened = Promise.withResolvers<void>();
  const answers = Promise.withResolvers<{ confirmed: true }>();
  const responder = session.onDialog(({ dialogId }, { signal }) => {
    asked.push(dialogId);
    signals.push(signal);
    opened.resolve();
    return answers.promise;
  });
  await responder.ready;
  const run = session.promptAndWait("Ask.");
  run.catch(() => {});
  await opened.promise;
  await replace(turn);
  expect((await session.dialogs()).map(({ dialogId }) => dialogId)).toEqual([asked[0]]);
  expect(signals.map(({ aborted }) => aborted)).not.toContain(true);
  answers.resolve({ confirmed: true });
  await run;
  expect(new Set(asked).size).toBe(1);
  expect(await session.dialogs()).toEqual([]);
  expect(stage.provider.requests.at(-1)?.hasText("ask-first")).toBe(true);
});

test("a wait for a run resolves with its outcome, and the session was running all the time", async () => {
  const gate = new Gate();
  await using turn = await begin(answer("Half ", hold(gate), "and half."));
  const { session, client, stage } = turn;
  const states: string[] = [];
  await using notifications = session.notifications();
  await notifications.ready;
  const reading = (async () => {
    for await (const { name, params } of notifications) {
      if (name === "session/updated") states.push(params.session.state);
      if (name === "run/ended") return params;
    }
    return undefined;
  })();
  reading.catch(() => {});
  const waited = session.promptAndWait("Work.");
  waited.catch(() => {});
  await gate.reached;
  const { runId } = await session.get();
  await replace(turn, 2);
  expect(await session.get()).toMatchObject({ state: "running", runId, pid: turn.pid, generation: 1 });
  const idle = client.session(session.id).waitForIdle();
  gate.open();
  await waited;
  await idle;
  expect(await reading).toMatchObject({ runId, outcome: "settled" });
  expect(states.filter((state) => !["idle", "running", "starting"].includes(state))).toEqual([]);
  expect(stage.provider.requests).toHaveLength(1);
});
