import { readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { pino } from "pino";
import { expect, test } from "vitest";
import { connect } from "../../../client/index.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold } from "../../../provider/reply.ts";
import { startDaemon } from "../../../server/daemon.ts";
import { exists } from "../../../server/pi/processes.ts";
import { patience } from "../../helpers/patience.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { helper } from "../../helpers/programs.ts";
import { Scene } from "./scene.ts";

// Children to which no daemon comes back, and children that another daemon finds.

/** The files that children have left in the state directory. */
function leftFiles(stateDir: string): string[] {
  return ["run", "k"].flatMap((name) =>
    readdirSync(join(stateDir, name), { recursive: true, withFileTypes: true })
      .filter((entry) => !entry.isDirectory())
      .map((entry) => join(entry.parentPath, entry.name)),
  );
}

const noise = "while :; do echo 'the noise of a tool'; sleep 0.002; done";
const isDelta = (record: string): boolean => /^\{"type":"(?:tool_execution|message)_update"/.test(record);

test("a run to which no daemon comes back ends with its pi and its tool, and the next daemon tells of it once", async () => {
  await using scene = await Scene.open({
    script: [answer("I run it.", call("bash", { command: noise }))],
    settings: { orphanIdleMs: 1_000, orphanRunMs: 2_000 },
    // Deltas are dropped when a session hibernates.
    allows: ({ onlyDeltas }) => onlyDeltas === true,
  });
  const { session, stage, pid, record } = scene;
  const run = session.prompt("Make noise.").settled();
  run.catch(() => {});
  await record.until(({ type }) => type === "tool_execution_update");
  await stage.kill();
  await expect.poll(() => exists(pid), patience).toBe(false);
  await expect.poll(() => stage.processes, patience).toEqual([]);
  expect(leftFiles(stage.stateDir).map((file) => basename(file))).toEqual(["rest", "stderr"]);

  await stage.start();
  expect(await run).toMatchObject({ outcome: "interrupted", state: "inserted" });
  expect(await session.get()).toMatchObject({ state: "hibernated", generation: 1 });
  await expect.poll(() => leftFiles(stage.stateDir), patience).toEqual([]);
  expect(await session.promptAndWait("Once more.")).toContain("Once more.");
  await session.waitForIdle();
  await scene.caughtUp();
  expect(record.named("run/ended").map(({ outcome }) => outcome)).toEqual(["interrupted", "settled"]);
  expect((await session.get()).generation).toBe(2);
  const { pid: next } = await session.get();
  // While nobody read, pi may have left out what a later record repeats.
  record.checkEvents([...stage.records(pid), ...stage.records(next as number)], isDelta);
  record.checkNumbers();
  record.checkReceipts();
  expect(record.faults).toEqual([]);
});

test("an idle pi without a daemon ends before one that waits for an answer to a question", async () => {
  await using scene = await Scene.open({
    script: [answer(call("bash", { command: "echo ask-first" })), answer("Done.")],
    settings: { orphanIdleMs: 1_000, orphanRunMs: 600_000 },
  });
  const { session, client, stage, pid } = scene;
  const idle = await client.createSession({ cwd: stage.cwd, model: "scripted/model-2" });
  const idlePid = idle.info?.pid as number;
  await using responder = session.onDialog(() => undefined);
  await responder.ready;
  const run = session.promptAndWait("Ask.");
  run.catch(() => {});
  await scene.record.until(({ method }) => method === "dialog/opened");
  await stage.kill();
  await expect.poll(() => exists(idlePid), patience).toBe(false);
  expect(exists(pid)).toBe(true);
  await stage.start();
  expect(await idle.get()).toMatchObject({ state: "hibernated", generation: 1 });
  const [{ dialogId = "" } = {}] = await session.dialogs();
  await session.respond(dialogId, { confirmed: true });
  await run;
  await scene.check();
});

test("a daemon that ends in order leaves no children, also if it is killed before all have ended", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({
    script: [answer("I thi", hold(gate), "nk.")],
    settings: { drainMs: 0 },
  });
  const { session, client, stage, pid } = scene;
  const other = await client.createSession({ cwd: stage.cwd, model: "scripted/model-2" });
  const otherPid = other.info?.pid as number;
  session.prompt("Think.").catch(() => {});
  await gate.reached;
  scene.suspend();
  const ended = stage.lives.end("SIGTERM");
  // Both were told to end before the daemon waits for one of them.
  await expect.poll(() => exists(otherPid), patience).toBe(false);
  await stage.kill();
  await ended;
  scene.resume();
  await expect.poll(() => exists(pid), patience).toBe(false);
  await stage.start();
  expect(await session.get()).toMatchObject({ state: "hibernated", generation: 1 });
});

test("a daemon on another state directory does not get the file of a pi that waits for its own", async () => {
  const gate = new Gate();
  await using scene = await Scene.open({ script: [answer("I thi", hold(gate), "nk.")] });
  const { session, stage, pid } = scene;
  const { file } = await session.get();
  const run = session.promptAndWait("Think.");
  run.catch(() => {});
  await gate.reached;
  await stage.kill();
  const stateDir = join(stage.root, "rival");
  const rival = await startDaemon({
    stateDir,
    pi: piUnderTest().cli,
    helper,
    drainMs: 0,
    env: { ...process.env, ...stage.agentDir.env, PI_RPCD_VALIDATE: "1" },
    log: pino({ level: "silent" }),
  });
  try {
    await using client = await connect({ stateDir, validateResults: true });
    const opened = client.call("session/open", { file });
    await expect(
      opened.then(({ sessionId }) => client.session(sessionId).promptAndWait("Mine.")),
    ).rejects.toMatchObject({ kind: "session_in_use" });
    expect(exists(pid)).toBe(true);
    await stage.start();
    gate.open();
    await run;
    await expect(client.call("session/open", { file })).rejects.toMatchObject({ kind: "session_in_use" });
  } finally {
    await rival.stop();
  }
  await scene.check();
});
