import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import type { DeliveryHandle } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold, status } from "../../../provider/reply.ts";
import { exists } from "../../../server/pi/processes.ts";
import { patience } from "../../helpers/patience.ts";
import { Scene } from "./scene.ts";

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

test("a start that fails ends what a killed daemon's other children left, and no surviving run", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({ script: [answer("I thi", hold(gate), "nk.")] });
  const { session, stage } = scene;
  const run = session.prompt("Think.").settled();
  run.catch(() => {});
  await gate.reached;
  await stage.kill();
  // Another run of this test ends all processes of this machine with its id.
  const id = randomUUID();
  const leftover = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000); console.log()"], {
    env: { ...process.env, PI_RPCD_CHILD: id },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const gone = once(leftover, "exit");
  await once(leftover.stdout, "data");
  appendFileSync(join(stage.stateDir, "children.jsonl"), `${JSON.stringify({ id })}\n`);
  await expect(stage.start(["env", "PI_RPCD_PI=/missing"])).rejects.toThrow("at its start");
  expect(stage.faults.splice(0)).toHaveLength(1);
  await gone;
  await stage.start();
  gate.open();
  expect(await run).toMatchObject({ outcome: "settled" });
  await scene.check();
});

test("a session that was being closed when the daemon died leaves no pi", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({ script: [answer("I thi", hold(gate), "nk.")] });
  const { session, client, stage, pid } = scene;
  session.prompt("Think.").catch(() => {});
  await gate.reached;
  scene.suspend();
  const closed = session.close().catch((error: unknown) => error);
  await client.call("daemon/info", {});
  await stage.replace();
  scene.resume();
  await closed;
  await session.close().catch((error: unknown) => {
    expect(error).toMatchObject({ kind: "session_not_found" });
  });
  await expect.poll(() => exists(pid), patience).toBe(false);
  await expect(session.get()).rejects.toMatchObject({ kind: "session_not_found" });
});

const mebibyte = 1024 * 1024;

test.each([0, 1, 5, 40])(
  "a prompt of 1 MiB, %s ms before the daemon dies, is in the transcript whole or not",
  async (ms) => {
    await using scene = await Scene.open();
    const { session, stage } = scene;
    const text = `Large ${"x".repeat(mebibyte)}.`;
    scene.suspend();
    const prompt = session.prompt(text, { promptId: "large" });
    prompt.catch(() => {});
    // Not a wait: the moment of the death is what the test varies.
    await sleep(ms);
    await stage.kill();
    scene.resume();
    await stage.start();
    const outcome = await prompt.settled().then(
      (run) => run.state,
      (error: { readonly kind?: string }) => error.kind,
    );
    await session.waitForIdle();
    expect(outcome).toBeOneOf(["inserted", "lost", "prompt_lost"]);
    const requests = stage.provider.requests.map((request) => request.hasText(text));
    expect(requests).toEqual(outcome === "inserted" ? [true] : []);
    expect(await session.promptAndWait("And a small one.")).toContain("small");
    expect(stage.provider.requests.every((request) => request.violations.length === 0)).toBe(true);
    expect(await session.get()).toMatchObject({ pid: scene.pid, generation: 1 });
  },
);

const isDelta = (record: string): boolean => record.startsWith('{"type":"message_update"');

const aloneOrNot = [
  { name: "while no daemon runs", isAlone: true },
  { name: "for a daemon that then dies", isAlone: false },
];

/** pi writes a tool's result of `length` characters, without a daemon or before the daemon dies. */
async function emitted(length: number, { isAlone }: { readonly isAlone: boolean }): Promise<Scene> {
  const gate = new Gate();
  const isLarge = (record: string): boolean => record.length > length;
  const scene = await Scene.open({
    script: [answer(hold(gate), call("emit", { text: "0123456789abcdef", times: length / 16 })), answer("Done.")],
    agent: { models: [{ id: "model-1", contextWindow: 100_000_000 }] },
    // So large records leave less place for deltas.
    allows: ({ reason, onlyDeltas }) => onlyDeltas === true || (length >= 8 * mebibyte && reason === "not_retained"),
  });
  const { session, stage, pid } = scene;
  try {
    const run = session.promptAndWait("Emit.");
    run.catch(() => {});
    await gate.reached;
    if (isAlone) await stage.kill();
    gate.open();
    await expect.poll(() => stage.records(pid).some(isLarge), patience).toBe(true);
    if (!isAlone) await stage.kill();
    await stage.start();
    await run;
    expect(stage.provider.requests).toHaveLength(2);
    return scene;
  } catch (error) {
    await scene[Symbol.asyncDispose]();
    throw error;
  }
}

test.each(aloneOrNot)("records of 2 MiB that pi writes $name come whole, and once", async (when) => {
  await using scene = await emitted(2 * mebibyte, when);
  await scene.check(isDelta);
});

// The store does not take so large a record: a gap names it, if its client had not got it.
test.each(aloneOrNot)(
  "records above 8 MiB that pi writes $name come whole or are named, and nothing else is missing",
  async (when) => {
    await using scene = await emitted(8 * mebibyte, when);
    await scene.check((record) => isDelta(record) || record.length > 8 * mebibyte);
  },
);
