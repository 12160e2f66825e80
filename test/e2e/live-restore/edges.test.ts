import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { DeliveryHandle } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold } from "../../../provider/reply.ts";
import { patience } from "../../helpers/patience.ts";
import { Scene } from "./scene.ts";

// Kills where what pi itself does while no daemon reads decides how the next daemon goes on.

const got = { outcome: "delivered", status: 200 };

async function until(push: DeliveryHandle, state: string): Promise<void> {
  await expect.poll(async () => (await push.get()).state, patience).toBe(state);
}

test("queued prompts that pi expanded from a template are recognised by the next daemon, which can cancel one", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({ script: [answer("I thi", hold(gate), "nk."), answer("Good day, Ada.")] });
  const { client, stage } = scene;
  const prompts = join(stage.agentDir.path, "prompts");
  mkdirSync(prompts, { recursive: true });
  writeFileSync(join(prompts, "greet.md"), "Greet $1 politely.");
  const session = await client.createSession({ cwd: stage.cwd, model: "scripted/model-1" });
  const run = session.runUntilSettled("Begin.");
  await gate.reached;
  const ada = session.followUp("/greet Ada");
  await ada;
  const { promptId } = await session.followUp("/greet Bob");
  await stage.replace();
  const texts = ["Greet Ada politely.", "Greet Bob politely."].map((text) => expect.objectContaining({ text }));
  expect((await session.getQueue()).followUp).toEqual(texts);
  expect(await client.call("prompt/cancel", { promptId })).toMatchObject({ cancelled: true });
  await stage.replace();
  gate.open();
  expect(await run).toMatchObject({ outcome: "settled", state: "inserted" });
  expect(await ada.settled()).toMatchObject({ outcome: "settled", state: "inserted" });
});

test("a push that expires while no daemon runs is taken back from its pi, which never shows it to the model", async () => {
  await using scene = await Scene.open({ script: [answer("Done.")] });
  const { session, stage } = scene;
  const push = session.push({
    ...{ customType: "note", content: "Too late.", deliverAs: "nextTurn", triggerTurn: true },
    expiresAfterMs: 3_000,
  });
  const { expiresAt } = await push.accepted;
  // On a loaded machine it may expire before pi has it; nothing then differs below.
  await expect.poll(async () => (await push.get()).state, patience).toMatch(/held|expired/);
  await stage.kill();
  await sleep(Math.max(0, (expiresAt as number) - Date.now()));
  await stage.start();
  await until(push, "expired");
  // Its prompt has pi's helper insert whatever it still holds.
  session.push({ customType: "note", content: "In time.", deliverAs: "nextTurn" });
  expect(await session.promptAndWait("And now?")).toBe("Done.");
  expect(scene.carried("In time.")).toEqual([1]);
  expect(scene.carried("Too late.")).toEqual([0]);
  await scene.check();
});

test("pushes and prompts reach a pi that reloaded its extensions under the former daemon", async () => {
  await using scene = await Scene.open();
  const { session, stage } = scene;
  await session.prompt("/matrix-reload");
  await session.promptAndWait("Before.");
  await stage.replace();
  const push = session.push({ customType: "note", content: "After the reload." });
  expect((await push.answered).attempts).toMatchObject([got]);
  // The run of the push ends a moment after its answer.
  await session.waitForIdle();
  expect(await session.promptAndWait("After.")).toContain("After.");
  await scene.check();
});

test("a question that an extension asks while no daemon runs is asked by the next one", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({
    script: [answer("I ask. ", hold(gate), call("bash", { command: "echo ask-first" })), answer("Done.")],
  });
  const { session, stage } = scene;
  await using responder = session.onDialog(() => ({ confirmed: true }));
  await responder.ready;
  const run = session.promptAndWait("Ask.");
  run.catch(() => {});
  await gate.reached;
  await stage.kill();
  gate.open();
  await expect.poll(() => stage.records(scene.pid).some((record) => record.includes('"confirm"')), patience).toBe(true);
  await stage.start();
  await run;
  expect(scene.record.named("dialog/opened")).toHaveLength(1);
  await scene.check();
});

test("an abort that pi had not read when the daemon died ends the run as aborted by its client, once", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({ script: [answer("I thi", hold(gate), "nk.")] });
  const { stage, session } = scene;
  const aborter = await stage.client({ name: "the one who aborts" });
  const run = session.prompt("Think.").settled();
  run.catch(() => {});
  await gate.reached;
  scene.suspend();
  const aborted = aborter.session(session.id).abort();
  aborted.catch(() => {});
  // Answers come in the order of the calls, as far as nothing waits for pi.
  await aborter.call("daemon/info", {});
  await stage.replace();
  scene.resume();
  // It may have been written or not.
  await aborter.session(session.id).abort();
  expect(await run).toMatchObject({ outcome: "aborted" });
  await scene.record.until(({ method }) => method === "run/ended");
  expect(scene.record.named("run/ended")).toMatchObject([{ outcome: "aborted", by: { name: "the one who aborts" } }]);
  await scene.check();
});

test.each(["another session", "a fork"])(
  "pi goes to %s while no daemon runs, and both sessions are told of it",
  async (kind) => {
    await using scene = await Scene.open();
    const { session, client, stage, pid } = scene;
    await session.promptAndWait("A first prompt.");
    await session.waitForIdle();
    const { file } = await session.get();
    const barrier = scene.barrier();
    const change = kind === "a fork" ? `matrix-fork ${lastEntry(file)}` : "matrix-new";
    const handled = session.prompt(`/matrix-after ${barrier.url} ${change}`);
    handled.catch(() => {});
    await barrier.reached;
    await stage.kill();
    const before = stage.records(pid).length;
    barrier.open();
    await expect.poll(() => stage.records(pid).length, patience).toBeGreaterThan(before);
    await stage.start();
    const { params } = await scene.record.until(({ method }) => method === "session/replaced");
    expect((await handled).disposition).toBe("handled");
    const to = client.session(String(params?.["to"]));
    await to.waitForIdle();
    expect(await to.get()).toMatchObject({ pid, state: "idle" });
    expect(await session.get()).toMatchObject({ state: "hibernated", file });
    const last = (await session.get()).cursor;
    await stage.replace();
    expect(await to.get()).toMatchObject({ pid, state: "idle" });
    expect(await to.promptAndWait("There.")).toContain("There.");
    expect(await session.promptAndWait("Here.")).toContain("Here.");
    expect((await session.get()).pid).not.toBe(pid);
    await scene.record.until(({ method, params: ended }) => method === "run/ended" && ended?.["outcome"] === "settled");
    expect(scene.record.named("session/replaced")).toHaveLength(1);
    scene.record.checkNumbers();
    scene.record.checkReceipts();
    // Without a pi the log goes on behind the numbers that its daemon had reserved and not used.
    const unused = new RegExp(`"from":${last + 1},.*"daemon_restart"`);
    expect(scene.record.faults.filter(({ kind, message }) => kind !== "gap" || !unused.test(message))).toEqual([]);
  },
);

function lastEntry(file: string): string {
  return (JSON.parse(readFileSync(file, "utf8").trimEnd().split("\n").at(-1) ?? "{}") as { readonly id: string }).id;
}
