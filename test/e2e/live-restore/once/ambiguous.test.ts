import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { DeliveryHandle } from "../../../../client/index.ts";
import { Gate } from "../../../../provider/gate.ts";
import { answer, call, hold, status } from "../../../../provider/reply.ts";
import { patience } from "../../../helpers/patience.ts";
import { Scene } from "../scene.ts";

// Kills where two things look the same, or where one half of something has happened.

const got = { outcome: "delivered", status: 200 };

async function until(push: DeliveryHandle, state: string): Promise<void> {
  await expect.poll(async () => (await push.get()).state, patience).toBe(state);
}

test("prompts of equal text keep their own states, runs and entries", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({
    script: [answer("I thi", hold(gate), "nk."), answer("Again."), answer("And again.")],
  });
  const { session, client, stage } = scene;
  const ids = ["equal-1", "equal-2", "equal-3"];
  const [first, ...others] = ids as [string, string, string];
  const prompts = [session.prompt("The same.", { promptId: first })];
  await gate.reached;
  for (const promptId of others) {
    const queued = session.followUp("The same.", { promptId });
    await queued;
    prompts.push(queued);
    const { followUp } = await session.getQueue();
    await stage.replace();
    expect((await session.getQueue()).followUp).toEqual(followUp);
  }
  gate.open();
  const runs = await Promise.all(prompts.map((prompt) => prompt.settled()));
  expect(runs.map(({ promptId, outcome, state }) => [promptId, outcome, state])).toEqual(
    ids.map((id) => [id, "settled", "inserted"]),
  );
  expect(scene.carried("The same.")).toEqual([1, 2, 3]);
  const found = await Promise.all(ids.map((promptId) => client.call("prompt/get", { promptId })));
  expect(new Set(found.map(({ entryId }) => entryId)).size).toBe(3);
  await scene.check();
});

test("a push that was sent again after its run had failed is not parked again", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({ script: [status(400), answer("Under", hold(gate), "stood.")] });
  const { session, stage } = scene;
  const push = session.push({ customType: "note", content: "Twice." });
  await until(push, "parked");
  await session.waitForIdle();
  await push.resend();
  await gate.reached;
  await until(push, "delivered");
  await stage.replace();
  expect((await push.get()).state).toBe("delivered");
  gate.open();
  expect(await push.answered).toMatchObject({ attempts: [{ outcome: "failed", status: 400 }, got] });
  expect((await push.get()).history.filter(({ state }) => state === "parked")).toHaveLength(1);
  await scene.check();
});

test("a parked push is resent once if the daemon dies around the call", async () => {
  await using scene = await Scene.open({ script: [status(400)] });
  const { session, client, stage } = scene;
  const push = session.push({ customType: "note", content: "Resent." });
  await until(push, "parked");
  await session.waitForIdle();
  scene.suspend();
  const resent = push.resend().catch((error: unknown) => error);
  // Answers come in the order of the calls, as far as nothing waits for pi.
  await client.call("daemon/info", {});
  await stage.kill();
  scene.resume();
  await stage.start();
  await resent;
  await session.waitForIdle();
  if ((await push.get()).state === "parked") await push.resend();
  expect((await push.answered).attempts).toMatchObject([{ outcome: "failed" }, got]);
  expect(scene.carried("Resent.")).toEqual([1, 1]);
  await scene.check();
});

test("a push that was held when the daemon died is answered, although its pi ends before it answers the next one", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({
    script: [answer("I thi", hold(gate), "nk.")],
    allows: ({ reason }) => reason === "daemon_restart",
  });
  const { session, stage, pid } = scene;
  const run = session.prompt("Think.").settled();
  run.catch(() => {});
  await gate.reached;
  const push = session.push({ customType: "note", content: "Note this.", deliverAs: "steer" });
  await until(push, "held");
  scene.suspend();
  await stage.replace();
  process.kill(pid, "SIGKILL");
  gate.open();
  expect(await run).toMatchObject({ outcome: "interrupted" });
  expect(await push.answered).toMatchObject({ attempts: [{ outcome: "delivered" }] });
  await session.waitForIdle();
});

test("an answer to a dialog reaches the extension when it was stored and pi had not read it", async () => {
  await using scene = await Scene.open({
    script: [answer(call("bash", { command: "echo ask-first | tr a-z A-Z" })), answer("Done.")],
  });
  const { session, stage } = scene;
  await using responder = session.onDialog(() => undefined);
  await responder.ready;
  const run = session.promptAndWait("Ask.");
  run.catch(() => {});
  await scene.record.until(({ method }) => method === "dialog/opened");
  const [{ dialogId = "" } = {}] = await session.dialogs();
  scene.suspend();
  await session.respond(dialogId, { confirmed: true });
  await stage.kill();
  await stage.start();
  scene.resume();
  await run;
  expect(stage.provider.requests.at(-1)?.countText("ASK-FIRST")).toBe(1);
  await expect(session.respond(dialogId, { confirmed: false })).rejects.toMatchObject({ kind: "stale" });
  expect(scene.record.named("dialog/resolved")).toMatchObject([{ dialogId, how: "answered", by: "client" }]);
  await scene.check();
});

test("a call that answers a dialog has its result, whenever its daemon dies", async () => {
  const momentsMs = [0, 2, 5, 10, 20];
  await using scene = await Scene.open({
    script: momentsMs.flatMap((ms) => [answer(call("bash", { command: `echo ask-first ${ms}` })), answer("Done.")]),
  });
  const { session, stage, client } = scene;
  await using responder = session.onDialog(() => undefined);
  await responder.ready;
  for (const ms of momentsMs) {
    const run = session.promptAndWait("Ask.");
    run.catch(() => {});
    await expect.poll(() => session.dialogs(), patience).toHaveLength(1);
    const [{ dialogId = "" } = {}] = await session.dialogs();
    const params = { dialogId, answer: { confirmed: true }, idempotencyKey: `answer-${ms}` } as const;
    const answered = client.call("dialog/respond", params);
    answered.catch(() => {});
    // Not a wait: the moment of the death is what the test varies.
    await sleep(ms);
    await stage.replace();
    const result = await answered;
    expect(result).toMatchObject({ dialogId, resolution: { how: "answered", by: "client" } });
    expect(await client.call("dialog/respond", params)).toEqual(result);
    await run;
  }
  expect(scene.record.named("dialog/resolved")).toHaveLength(momentsMs.length);
  await scene.check();
});
