import { copyFileSync, existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { DeliveryState } from "../../../protocol/delivery.ts";
import { Gate } from "../../../provider/gate.ts";
import { answer, call, delayed, hold } from "../../../provider/reply.ts";
import { exists } from "../../../server/pi/processes.ts";
import { patience } from "../../helpers/patience.ts";
import { copyStore } from "../../helpers/stored.ts";
import { Scene } from "./scene.ts";

// The store loses its newest entries, and the pi of the killed daemon lives: it has done more than the store says.

/** The store is as before, and its mark still has the number of the newest commit. */
function goBack(stateDir: string, former: string): void {
  for (const name of ["store.db", "store.db-wal", "store.db.copy", "store.changes", "store.changes.former"]) {
    rmSync(join(stateDir, name), { force: true });
    if (existsSync(join(former, name))) copyFileSync(join(former, name), join(stateDir, name));
  }
  rmSync(join(stateDir, "store.db-shm"), { force: true });
}

/** The daemon is killed, and finds the store of an earlier moment. */
async function damage({ stage, session, client }: Scene, former: string): Promise<void> {
  // The mark has only numbers of synced commits.
  await session.push({ customType: "note", content: "Lost.", deliverAs: "nextTurn" }).accepted;
  await stage.replace(() => goBack(stage.stateDir, former));
  expect((await client.info()).store?.damaged).toHaveLength(1);
}

/** No receipt contradicted another one, and the former pi has ended. */
async function check({ client, session, stage, pid, record }: Scene): Promise<void> {
  expect(stage.lives.errors().map(({ msg }) => msg)).toEqual([expect.stringMatching(/^the store was damaged/)]);
  expect(record.faults).toEqual([]);
  await expect.poll(() => exists(pid), patience).toBe(false);
  expect((await client.info()).liveRestore).toMatchObject({ restored: 0, lost: 1 });
  expect((await session.get()).pendingDialogs).toEqual([]);
  for (const { violations } of stage.provider.requests) expect(violations).toEqual([]);
}

/** A push in a run: what the store says of it, what its pi has done, and its state without another prompt. */
const cases: readonly (readonly [stored: DeliveryState, done: DeliveryState, then: DeliveryState])[] = [
  ["accepted", "held", "answered"],
  ["accepted", "prepared", "parked"],
  ["held", "prepared", "parked"],
  ["held", "delivered", "parked"],
  ["held", "answered", "parked"],
  ["prepared", "delivered", "parked"],
  ["delivered", "answered", "delivered"],
];

test.each(cases)("a push that is %s in a damaged store, and %s in pi, gets no wrong receipt", async (...states) => {
  const [stored, done, then] = states;
  const [turn, headers, end] = [new Gate(), new Gate(), new Gate()];
  await using scene = await Scene.open({
    script: [
      answer("I work.", hold(turn), call("bash", { command: "true" })),
      delayed(hold(headers), answer("I note ", hold(end), "it.")),
    ],
    allows: () => true,
  });
  const { session, client, stage } = scene;
  const prompt = session.prompt("Work.", { promptId: "work" });
  prompt.settled().catch(() => {});
  await turn.reached;
  scene.suspend();
  const push = session.push({ customType: "note", content: "Note this.", deliverAs: "steer" });
  await push.accepted;
  const reached = (state: DeliveryState) => expect.poll(async () => (await push.get()).state, patience).toBe(state);
  const former = join(stage.root, "former");
  const next: Partial<Record<DeliveryState, () => void>> = {
    accepted: () => scene.resume(),
    held: () => turn.open(),
    prepared: () => headers.open(),
    delivered: () => end.open(),
  };
  for (const state of ["accepted", "held", "prepared", "delivered", "answered"] as const) {
    await reached(state);
    if (state === stored) copyStore(stage.stateDir, former);
    if (state === done) break;
    next[state]?.();
  }
  await damage(scene, former);
  headers.open();
  end.open();
  await reached(then);
  expect(await client.call("prompt/get", { promptId: "work" })).toMatchObject({ state: "inserted" });
  await session.waitForIdle();
  expect(await session.promptAndWait("And now?")).toContain("And now?");
  await reached(then === "delivered" ? "delivered" : "answered");
  expect(stage.provider.requests.at(-1)?.countText("Note this.", { roles: ["user"] })).toBe(1);
  expect(Math.max(...scene.carried("Note this."))).toBe(1);
  await check(scene);
});

test("a push in the transcript of an idle pi, accepted in a damaged store, starts no run", async () => {
  await using scene = await Scene.open({ allows: () => true });
  const { session, stage } = scene;
  scene.suspend();
  const push = session.push({ customType: "note", content: "Note this.", triggerTurn: false });
  await push.accepted;
  const former = copyStore(stage.stateDir, join(stage.root, "former"));
  scene.resume();
  await expect.poll(async () => (await push.get()).state, patience).toBe("inserted");
  await damage(scene, former);
  expect(await session.promptAndWait("And now?")).toContain("And now?");
  expect(scene.carried("Note this.")).toEqual([1]);
  await check(scene);
});

test.each(["closed", "open"])("a dialog, $0 in a damaged store and open in pi, holds no push up", async (stored) => {
  const gate = new Gate();
  await using scene = await Scene.open({
    script: [answer("I ask.", hold(gate), call("bash", { command: "echo ask-first" }))],
    allows: () => true,
  });
  const { session, stage } = scene;
  await using responder = session.onDialog(() => new Promise(() => {}));
  await responder.ready;
  const former = join(stage.root, "former");
  const prompt = session.prompt("Work.");
  prompt.settled().catch(() => {});
  await gate.reached;
  if (stored === "closed") copyStore(stage.stateDir, former);
  gate.open();
  await expect.poll(async () => (await session.get()).pendingDialogs, patience).toHaveLength(1);
  if (stored === "open") copyStore(stage.stateDir, former);
  const push = session.push({ customType: "note", content: "It waits.", deliveryId: "waiting" });
  await expect.poll(async () => (await push.get()).reason?.code, patience).toBe("dialog");
  await damage(scene, former);
  expect((await session.get()).pendingDialogs).toEqual([]);
  // The store has lost it; a client without an answer sends it again.
  const again = session.push({ customType: "note", content: "It waits.", deliveryId: "waiting" });
  expect(await again.answered).toMatchObject({ attempts: [{ outcome: "delivered" }] });
  expect(scene.carried("It waits.")).toEqual([0, 1]);
  await check(scene);
});
