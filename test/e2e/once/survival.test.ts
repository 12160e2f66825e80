import { expect, test } from "vitest";
import { type Client, connect } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, hold } from "../../../provider/reply.ts";
import { startKillableStage } from "../../helpers/killable-stage.ts";
import { Notifications } from "../../helpers/notifications.ts";
import { patience } from "../../helpers/patience.ts";
import { endingWithDaemon } from "../../helpers/stage.ts";

// The rows of "What survives what" in PROTOCOL.md, for one session in the middle of its work. Dialogs have their own
// tests
// (test/contract/session/dialogs.test.ts).

async function hasDeltas(client: Pick<Client, "call">, sessionId: string): Promise<boolean> {
  const { events } = await client.call("session/events", { sessionId, limit: 1_000 });
  return JSON.stringify(events).includes('"type":"message_update"');
}

/** A session with a completed prompt, a run, a queued prompt, a waiting push, and an exclusive controller. */
async function begin(config?: string) {
  const gate = new Gate();
  const script = [answer("done"), answer("half ", "of it, ", hold(gate), "and the rest")];
  const stage = await startKillableStage({ provider: { script }, ...(config === undefined ? {} : { config }) });
  const client = await connect({ stateDir: stage.stateDir, reconnect: false });
  const { sessionId, epoch } = await client.call("session/create", { cwd: stage.cwd });
  const told = await Notifications.of(stage.stateDir, sessionId);
  const { promptId: ended } = await client.call("session/prompt", { sessionId, text: "one", wait: "settled" });
  await client.call("session/acquireControl", { sessionId, policy: "exclusive", ttlMs: 60_000 });
  const { promptId: running } = await client.call("session/prompt", { sessionId, text: "two" });
  await told.event("message_update", (event) => JSON.stringify(event).includes("half"));
  const { promptId: queued } = await client.call("session/steer", { sessionId, text: "three" });
  const push = { deliveryId: "for-the-next-prompt", customType: "note", content: "kept" };
  await client.call("delivery/push", { sessionId, ...push, deliverAs: "nextTurn" });
  const get = () => stage.client.call("session/get", { sessionId });
  const prompt = (promptId: string) => stage.client.call("prompt/get", { promptId });
  return {
    ...{ stage, client, told, gate, sessionId, running, queued, get, prompt },
    control: async () => {
      const { control } = await get();
      return { policy: control?.policy, hasController: control?.controller !== undefined };
    },
    hasDeltas: () => hasDeltas(stage.client, sessionId),
    /** Checks what is kept in all three cases. */
    isKept: async () => {
      expect((await get()).epoch).toBe(epoch);
      expect(await prompt(ended)).toMatchObject({ state: "inserted", outcome: "settled" });
      const { state } = await stage.client.call("delivery/get", { deliveryId: push.deliveryId });
      expect(["accepted", "held"]).toContain(state);
      const { events } = await stage.client.call("session/events", { sessionId, deltas: false });
      expect(events.filter(({ method }) => method === "run/ended").length).toBeGreaterThan(0);
    },
    [Symbol.asyncDispose]: async () => {
      gate.open();
      await told[Symbol.asyncDispose]();
      await client.close();
      await stage[Symbol.asyncDispose]();
    },
  };
}

test("the end of a client's connection ends its waits and nothing else", async () => {
  await using work = await begin();
  const { sessionId, client } = work;
  const rejected = expect(client.call("session/waitForIdle", { sessionId })).rejects.toThrow();
  await client.close();
  await rejected;
  expect(await work.get()).toMatchObject({ state: "running" });
  expect(await work.control()).toEqual({ policy: "exclusive", hasController: true });
  await work.isKept();
  work.gate.open();
  await work.told.until(({ name, params }) => {
    const { promptId, outcome } = (params["prompt"] ?? {}) as { promptId?: string; outcome?: string };
    return name === "prompt/updated" && promptId === work.queued && outcome === "settled";
  });
});

test("the death of pi interrupts the run and loses the prompts in its queue; everything else is kept", async () => {
  await using work = await begin();
  const { sessionId, client } = work;
  const waiting = client.call("prompt/wait", { promptId: work.running });
  const { pid } = await work.get();
  process.kill(pid as number, "SIGKILL");
  expect(await waiting).toMatchObject({ outcome: "interrupted" });
  // The subscription continues.
  await work.told.until(({ name, params }) => name === "run/ended" && params["outcome"] === "interrupted");
  await expect.poll(() => work.prompt(work.queued)).toMatchObject({ state: "lost" });
  expect(await work.prompt(work.running)).toMatchObject({ state: "inserted", outcome: "interrupted" });
  expect(await work.control()).toEqual({ policy: "exclusive", hasController: true });
  await work.isKept();
  expect(await work.hasDeltas()).toBe(true);
  await client.call("session/hibernate", { sessionId, force: true });
  expect(await work.hasDeltas()).toBe(false);
});

test("a session whose pi crashed while it was idle forgets its deltas when it hibernates", async () => {
  await using stage = await startKillableStage({ provider: { script: [answer("do", "ne")] } });
  const { client } = stage;
  const { sessionId } = await client.call("session/create", { cwd: stage.cwd });
  await client.call("session/prompt", { sessionId, text: "one", wait: "settled" });
  const { pid } = await client.call("session/get", { sessionId });
  process.kill(pid as number, "SIGKILL");
  const state = async (): Promise<string> => (await client.call("session/get", { sessionId })).state;
  await expect.poll(state, patience).toBe("crashed");
  expect(await hasDeltas(client, sessionId)).toBe(true);
  await client.call("session/hibernate", { sessionId, force: true });
  expect(await hasDeltas(client, sessionId)).toBe(false);
});

test("without live restore the death of the daemon interrupts the run and ends the control; the next daemon has everything else", async () => {
  await using work = await begin(endingWithDaemon);
  const { sessionId } = work;
  const { cursor } = await work.get();
  const rejected = expect(work.client.call("prompt/wait", { promptId: work.running })).rejects.toThrow();
  await work.stage.restart();
  await rejected;
  expect(await work.prompt(work.running)).toMatchObject({ state: "inserted", outcome: "interrupted" });
  expect(await work.prompt(work.queued)).toMatchObject({ state: "lost" });
  expect(await work.control()).toEqual({ policy: "exclusive", hasController: false });
  expect((await work.get()).cursor).toBeGreaterThan(cursor);
  await work.isKept();
  expect(await work.hasDeltas()).toBe(false);
  const { events } = await work.stage.client.call("session/events", { sessionId, after: cursor, deltas: false });
  const ended = { method: "run/ended", params: expect.objectContaining({ outcome: "interrupted" }) };
  expect(events).toContainEqual(expect.objectContaining(ended));
});
