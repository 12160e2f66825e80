import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold } from "../../../provider/reply.ts";
import { exists } from "../../../server/pi/processes.ts";
import { patience } from "../../helpers/patience.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { RestoreStage } from "../../helpers/restore-stage.ts";

// A pi that the next daemon cannot go on with for ever: it finishes its run, and then another one takes its place.

const teedPi = join(import.meta.dirname, "..", "..", "fixtures", "teed-pi.mjs");

/** Why: what happens while no daemon runs. */
const reasons: readonly { readonly name: string; readonly change: (stateDir: string, pi: string) => void }[] = [
  { name: "its pi was replaced on disk", change: (_stateDir, pi) => void copyFileSync(teedPi, pi) },
  {
    name: "its helper speaks another version of the link",
    change: (stateDir) => {
      const store = new DatabaseSync(join(stateDir, "store.db"));
      store.exec("UPDATE children SET facts = json_set(facts, '$.left.link.version', 99)");
      store.close();
    },
  },
];

/** A copy of pi's program, in a directory of its own. */
function replaceablePi(stack: DisposableStack): string {
  const directory = mkdtempSync(join(tmpdir(), "replaced-pi-"));
  stack.defer(() => rmSync(directory, { recursive: true, force: true }));
  const pi = join(directory, "pi.mjs");
  copyFileSync(teedPi, pi);
  return pi;
}

test.each(reasons)("a pi finishes its run, and the next one does what waits: $name", async ({ change }) => {
  using stack = new DisposableStack();
  const pi = replaceablePi(stack);
  const gate = new Gate();
  await using stage = await RestoreStage.open({
    pi: piUnderTest(),
    provider: {
      script: [
        answer("I ask. ", hold(gate), call("bash", { command: "echo ask-first" })),
        answer("Done."),
        answer("Seen."),
      ],
    },
    extensions: ["asking"],
    env: { PI_RPCD_PI: pi },
  });
  const client = await stage.client();
  const session = await client.createSession({ cwd: stage.cwd, model: "scripted/model-1" });
  const { pid = 0 } = session.info ?? {};
  await using responder = session.onDialog(() => ({ confirmed: true }));
  await responder.ready;
  const prompt = session.prompt("Work.", { promptId: "work" });
  await prompt;
  await gate.reached;
  await stage.replace(() => change(stage.stateDir, pi));

  expect(await session.get()).toMatchObject({ pid, generation: 1, state: "running" });
  await expect(session.steer("And this.")).rejects.toMatchObject({ kind: "session_busy" });
  const push = session.push({ customType: "note", content: "It waits." });
  await push.accepted;
  gate.open();

  expect(await push.answered).toMatchObject({ state: "answered", attempts: [{ outcome: "delivered" }] });
  const after = await session.get();
  expect(after.generation).toBe(2);
  expect(after.pid).not.toBe(pid);
  await expect.poll(() => exists(pid), patience).toBe(false);
  expect(stage.provider.requests.map((request) => request.countText("It waits.", { roles: ["user"] }))).toEqual([
    0, 0, 1,
  ]);
  expect(stage.provider.requests.at(-1)?.countText("Done.", { roles: ["assistant"] })).toBe(1);
  expect(await client.call("prompt/get", { promptId: "work" })).toMatchObject({ state: "inserted" });
  expect((await client.info()).liveRestore).toMatchObject({ restored: 1, lost: 0 });
  await session.waitForIdle();
  expect(await session.promptAndWait("And this.")).toContain("And this.");
});

test("a replaced pi ends after an aborted run though a message is left in its queue, which is reported lost", async () => {
  using stack = new DisposableStack();
  const pi = replaceablePi(stack);
  const gate = new Gate();
  await using stage = await RestoreStage.open({
    pi: piUnderTest(),
    provider: { script: [answer("I thi", hold(gate), "nk."), answer("Here.")] },
    env: { PI_RPCD_PI: pi },
  });
  const client = await stage.client();
  const session = await client.createSession({ cwd: stage.cwd, model: "scripted/model-1" });
  const { pid = 0 } = session.info ?? {};
  const run = session.prompt("Think.").settled();
  run.catch(() => {});
  await gate.reached;
  const { promptId } = await session.followUp("Later.");
  await stage.replace(() => copyFileSync(teedPi, pi));
  await session.abort();
  gate.open();
  expect(await run).toMatchObject({ outcome: "aborted" });
  await expect.poll(() => exists(pid), patience).toBe(false);
  await expect.poll(async () => (await client.call("prompt/get", { promptId })).state, patience).toBe("lost");
  expect(await session.promptAndWait("Are you there?")).toBe("Here.");
  expect((await session.get()).generation).toBe(2);
});
