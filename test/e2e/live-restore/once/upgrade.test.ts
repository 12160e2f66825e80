import { appendFileSync, cpSync, globSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { SessionHandle } from "../../../../client/index.ts";
import { Gate } from "../../../../provider/gate.ts";
import { answer, call, hold } from "../../../../provider/reply.ts";
import { piUnderTest } from "../../../helpers/pi-versions.ts";
import { RestoreStage } from "../../../helpers/restore-stage.ts";

const checkout = join(import.meta.dirname, "..", "..", "..", "..");
const shipped = ["acp", "cli", "client", "context", "extension", "protocol", "provider", "server", "package.json"];
const runs = 20;

/** A copy of the sources, which can be replaced while a daemon and its children use it. */
class Installation implements Disposable {
  readonly path = mkdtempSync(join(tmpdir(), "installed-"));

  constructor() {
    this.install();
    symlinkSync(join(checkout, "node_modules"), join(this.path, "node_modules"));
  }

  /** Replaces every file, as an upgrade does. */
  install(mark = ""): void {
    for (const name of shipped) {
      rmSync(join(this.path, name), { recursive: true, force: true });
      cpSync(join(checkout, name), join(this.path, name), { recursive: true });
    }
    if (mark === "") return;
    for (const file of globSync("{extension,context,protocol,server}/**/*.ts", { cwd: this.path })) {
      appendFileSync(join(this.path, file), `\n// ${mark}\n`);
    }
  }

  /** What the helper and its parts would load later is gone until the next {@link install}. */
  remove(): void {
    for (const name of shipped) rmSync(join(this.path, name), { recursive: true, force: true });
  }

  [Symbol.dispose](): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

test(`an upgrade that replaces the files ends none of ${runs} runs`, async () => {
  using installed = new Installation();
  const gate = new Gate();
  let answers = 0;
  await using stage = await RestoreStage.open({
    pi: piUnderTest(),
    source: installed.path,
    provider: {
      otherwise: () => {
        answers += 1;
        const isFirst = answers <= runs;
        return isFirst ? answer("I begin. ", hold(gate), call("bash", { command: "echo tool" })) : answer("Done.");
      },
    },
  });
  const client = await stage.client();
  const sessions: SessionHandle[] = [];
  for (let n = 0; n < runs; n += 1) {
    sessions.push(await client.createSession({ cwd: stage.cwd, model: "scripted/model-1" }));
  }
  const pids = sessions.map(({ info }) => info?.pid);
  const settled = sessions.map((session, n) => session.prompt(`Run ${n}.`).settled());
  for (const run of settled) run.catch(() => {});
  await expect.poll(() => gate.waiting).toBe(runs);
  // Pushes wait in the helper, whose files are about to be replaced.
  const pushes = sessions.map((session) => session.push({ customType: "note", content: "Held." }));
  for (const push of pushes) await expect.poll(async () => (await push.get()).state).toBe("held");

  expect(await stage.endForRestart()).toBe(75);
  installed.remove();
  installed.install("an upgrade");
  await stage.start();

  const after = await Promise.all(sessions.map((session) => session.get()));
  expect(after.map(({ pid }) => pid)).toEqual(pids);
  expect(new Set(after.map(({ state }) => state))).toEqual(new Set(["running"]));
  gate.open();
  const outcomes = (await Promise.all(settled)).map(({ outcome }) => outcome);
  expect(outcomes).toEqual(sessions.map(() => "settled"));
  for (const push of pushes) expect((await push.answered).state).toBe("answered");
  expect(await client.info()).toMatchObject({ liveRestore: { available: true, restored: runs, lost: 0 } });
  expect(stage.provider.requests.filter((request) => request.violations.length > 0)).toEqual([]);
  await Promise.all(sessions.map((session) => session.waitForIdle()));
  const again = await Promise.all(sessions.map((session) => session.promptAndWait("And now?")));
  expect(again).toHaveLength(runs);
});
