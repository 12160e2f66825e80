import { expect, test } from "vitest";
import { isAgentSettled, type SessionHandle, type WireError } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, call, delayed, hold } from "../../provider/reply.ts";
import { fallAsleep } from "../helpers/asleep.ts";
import { EventVerifier } from "../helpers/event-verifier.ts";
import { startKillableStage } from "../helpers/killable-stage.ts";
import { endingWithDaemon, startStage } from "../helpers/stage.ts";
import { processesWith } from "../setup/processes.ts";

const state = async (session: SessionHandle): Promise<string> => (await session.get()).state;

async function settled(session: SessionHandle, action: () => Promise<unknown>): Promise<void> {
  const events = session.events();
  await events.ready;
  await action();
  for await (const { event } of events) if (isAgentSettled(event)) return;
}

test("a session that hibernates and wakes looks the same to its clients: transcript, pushes, cursor", async () => {
  await using stage = await startStage();
  const session = await stage.client.createSession({ cwd: stage.cwd, model: "scripted/model-1", idleAfterMs: 1 });
  await using witness = new EventVerifier(session.id);
  await witness.follow(stage.daemon.file);
  await session.promptAndWait("remember 4711");
  const waiting = session.push({ customType: "n", content: "for the next turn", deliverAs: "nextTurn" });
  await expect.poll(async () => (await waiting.get()).state).toBe("held");
  await expect.poll(() => state(session)).toBe("hibernated");

  // A push wakes it.
  await session.push({ customType: "n", content: "wake up" }).answered;
  expect(stage.provider.requests.at(-1)?.countText("remember 4711", { roles: ["user"] })).toBe(1);
  await expect.poll(() => state(session)).toBe("hibernated");

  // A prompt wakes it too, and carries the push that was held for a prompt.
  await witness.leave();
  await settled(session, () => session.followUp("and now?"));
  expect((await waiting.answered).state).toBe("answered");
  const last = stage.provider.requests.at(-1);
  for (const text of ["remember 4711", "wake up", "for the next turn", "and now?"]) {
    expect(last?.countText(text, { roles: ["user"] })).toBe(1);
  }
  await witness.follow(stage.daemon.file);
  await witness.event("agent_settled", () => true);
  expect(witness.violations).toEqual([]);
  expect(witness.gaps).toEqual([]);
  const { generation } = await session.get();
  expect(generation).toBeGreaterThanOrEqual(3);
});

test("prompts that arrive at the moment of hibernation run, each once", async () => {
  await using stage = await startStage();
  const session = await stage.session();
  const hibernate = (): Promise<unknown> =>
    stage.client.call("session/hibernate", { sessionId: session.id }).catch(({ kind }: WireError) => kind);
  await settled(session, () => session.prompt("round 0"));
  for (let round = 1; round <= 8; round += 1) {
    await settled(session, async () => {
      const asleep = hibernate();
      // Sometimes the child is already ending, sometimes pi is still being asked.
      for (let turn = 0; turn < round; turn += 1) await stage.client.call("daemon/info", {});
      await Promise.all([asleep, session.prompt(`round ${round}`)]);
    });
  }
  const last = stage.provider.requests.at(-1);
  for (let round = 0; round <= 8; round += 1) expect(last?.countText(`round ${round}`, { roles: ["user"] })).toBe(1);
  expect((await session.get()).lostPrompts).toEqual([]);
});

test("a session whose pi works or has background work does not hibernate; forced hibernation ends its run", async () => {
  const gate = new Gate();
  await using stage = await startStage({ provider: { script: [delayed(hold(gate), answer("late"))] } });
  const session = await stage.session();
  await session.prompt("think long");
  const hibernate = (force: boolean) => stage.client.call("session/hibernate", { sessionId: session.id, force });
  await expect(hibernate(false)).rejects.toMatchObject({ kind: "session_busy", data: { reason: "running" } });
  expect(await state(session)).toBe("running");
  expect(await hibernate(true)).toMatchObject({ state: "hibernated", exit: { expected: true } });
  gate.open();
  await settled(session, () => session.prompt("go on"));
  expect(stage.provider.requests.at(-1)?.countText("think long")).toBe(1);
});

test("without live restore the next daemon after a kill -9 ends every process of the children", async () => {
  const naps = `${1_000_000 + process.pid}`;
  const asleep = () => processesWith(`NAPS=${naps}`).filter(({ command }) => command === `sleep ${naps}`);
  await using stage = await startKillableStage({
    config: endingWithDaemon,
    env: () => ({ NAPS: naps }),
    provider: {
      script: [answer(call("bash", { command: `setsid sleep ${naps} & nohup sleep ${naps} & sleep ${naps}` }))],
    },
  });
  const session = await stage.session();
  const { pid } = await session.get();
  await session.prompt("run them");
  const command = `setsid sleep ${naps} & sleep ${naps}`;
  void stage.client.call("session/bash", { sessionId: session.id, command }).catch(() => {});
  await expect.poll(() => asleep().length).toBe(5);
  // A suspended pi does not even read the end of its stdin.
  process.kill(pid as number, "SIGSTOP");
  await stage.restart();
  expect(asleep()).toEqual([]);
  expect(await state(stage.client.session(session.id))).toBe("hibernated");
});

test("a program that lists sessions stays notified across lost connections", async () => {
  await using stage = await startStage();
  // Changes at the same moment are reported once, with the resulting state.
  const changed: string[] = [];
  const states: unknown[] = [];
  const leave = await stage.client.onSessionChanged(({ change, session }) => {
    changed.push(change);
    states.push(session?.state);
  });
  const session = await stage.session();
  await fallAsleep(stage.client, session.id);
  await expect.poll(() => states).toContain("hibernated");
  await session.close();
  await expect.poll(() => changed.at(-1)).toBe("closed");
  expect(changed[0]).toBe("created");
  leave();
});
