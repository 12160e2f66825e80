import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Gate } from "../../../../provider/gate.ts";
import { answer, call, hold } from "../../../../provider/reply.ts";
import { limits } from "../../../../server/configuration/limits.ts";
import { exists } from "../../../../server/pi/processes.ts";
import { patience } from "../../../helpers/patience.ts";
import { PatchedSource, type PlantedBug } from "../../../soak/planted.ts";
import { Scene } from "../scene.ts";

/** Every commit fails while the file exists that STORE_FAULT names: faults of system calls would not hit each thread. */
const failingCommits: PlantedBug = {
  file: "server/store/writer.ts",
  text: "      this.#sync(isSynced);\n",
  replacement: `      if (process.getBuiltinModule("node:fs").existsSync(String(process.env["STORE_FAULT"])))
        throw Object.assign(new Error("database or disk is full"), { errcode: 13 });
      this.#sync(isSynced);\n`,
};

/** Room for the first records of a run only. */
const smallTail: PlantedBug = {
  file: "server/configuration/limits.ts",
  text: "maxTailBytes: 64 * 1024 * 1024,",
  replacement: "maxTailBytes: 16 * 1024,",
};

const mebibyte = 1024 * 1024;
const emit = call("emit", { text: "0123456789abcdef", times: mebibyte / 16 });

test.each([
  { what: "a store that fails", bugs: [failingCommits] },
  { what: "failing commits and a full tail", bugs: [failingCommits, smallTail] },
])("$what do not stop pi; after a kill its run ends, and a gap names what is lost", async ({ bugs }) => {
  using source = new PatchedSource(...bugs);
  const directory = mkdtempSync(join(tmpdir(), "fault-"));
  const fault = join(directory, "now");
  const gates = [new Gate(), new Gate()] as const;
  try {
    await using scene = await Scene.open({
      source: source.path,
      env: { STORE_FAULT: fault },
      script: [answer(hold(gates[0]), emit), answer(emit), answer(emit), answer("Almost ", hold(gates[1]), "done.")],
      agent: { models: [{ id: "model-1", contextWindow: 100_000_000 }] },
      // On a loaded machine the recording client may be too slow for all deltas.
      allows: ({ reason, onlyDeltas }) =>
        onlyDeltas === true || ["daemon_restart", "store_failed", "not_retained"].includes(reason),
    });
    const { session, client, stage, pid, record } = scene;
    const run = session.prompt("Emit.", { promptId: "emit" }).settled();
    run.catch(() => {});
    await gates[0].reached;
    const push = session.push({ customType: "note", content: "Note this.", deliverAs: "steer" });
    await expect.poll(async () => (await push.get()).state, patience).toBe("held");
    writeFileSync(fault, "");
    gates[0].open();
    // pi gets there only if its keeper forgets output that no store has.
    await gates[1].reached;
    const bytes = stage.records(pid).reduce((sum, { length }) => sum + length + 1, 0);
    expect(bytes).toBeGreaterThan(limits.keeper.maxHeldBytes);
    await expect.poll(async () => (await client.info()).store?.state).not.toBe("open");
    await expect.poll(async () => (await push.get()).state, patience).toBe("answered");
    await scene.caughtUp();
    await stage.kill();
    rmSync(fault);
    await stage.start();
    // Later receipts would contradict the store: the session file decides.
    await expect.poll(() => exists(pid), patience).toBe(false);
    expect(await run).toMatchObject({ state: "inserted", outcome: "interrupted" });
    expect((await client.info()).liveRestore).toMatchObject({ restored: 0, lost: 1 });
    expect(await push.answered).toMatchObject({ attempts: [{ outcome: "delivered" }] });
    await session.waitForIdle();
    expect(await session.promptAndWait("And now?")).toContain("And now?");
    await scene.caughtUp();
    expect(record.gaps.map(({ reason }) => reason)).toContain("daemon_restart");
    record.checkNumbers();
    record.checkReceipts();
    // While the store fails, receipts are told without it, and a killed daemon forgets them. A client that is late sees
    // only that the push is answered again.
    for (const fault of record.faults) {
      expect(fault).toEqual({ kind: "receipt", message: expect.stringMatching(/went back from answered to /) });
    }
    const errors = stage.lives.errors().map(({ msg }) => msg);
    expect(errors).not.toContain("a receipt contradicts the delivery's state");
    expect(stage.provider.requests.at(-1)?.countText("Note this.", { roles: ["user"] })).toBe(1);
    for (const { violations } of stage.provider.requests) expect(violations).toEqual([]);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
