import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isInserted } from "../../../protocol/delivery-machine.ts";
import { fallAsleep } from "../../helpers/asleep.ts";
import { startKillableStage } from "../../helpers/killable-stage.ts";
import { endingWithDaemon } from "../../helpers/stage.ts";
import { copyStore } from "../../helpers/stored.ts";

// A power failure undoes what the store has not synced, at most back to the last sync, while pi's session file may
// already have the push. The files of the store are put back to simulate it.

const text = "exactly once";

async function begin() {
  // A power failure ends pi too.
  const stage = await startKillableStage({ config: endingWithDaemon });
  const session = await stage.session();
  await session.promptAndWait("Begin.");
  await fallAsleep(stage.client, session.id);
  const { file } = await session.get();
  return {
    stage,
    sessionId: session.id,
    session: () => stage.client.session(session.id),
    entries: () => readFileSync(file, "utf8").split(text).length - 1,
    /** The state of the store when the push was accepted. */
    accepted: async (delivery: { readonly accepted: Promise<unknown> }) => {
      await delivery.accepted;
      const synced = copyStore(stage.stateDir, join(stage.root, "synced"));
      return () => {
        rmSync(join(stage.stateDir, "store.db-shm"), { force: true });
        copyStore(synced, stage.stateDir);
      };
    },
    [Symbol.asyncDispose]: () => stage[Symbol.asyncDispose](),
  };
}

test("a push whose insertion a power failure undoes in the store is not inserted again", async () => {
  await using work = await begin();
  const { stage } = work;
  const delivery = work.session().push({ customType: "note", content: text, triggerTurn: false });
  const putBack = await work.accepted(delivery);
  await expect.poll(async () => (await delivery.get()).state).toBe("inserted");
  expect(work.entries()).toBe(1);
  await stage.restart(putBack);
  const found = work.session().delivery(delivery.id);
  await expect.poll(async () => (await found.get()).state).toBe("inserted");
  await work.session().promptAndWait("Go on.");
  const answered = await found.answered;
  expect(answered.history.map(({ state }) => state)).toEqual([
    ...["accepted", "inserted", "prepared", "delivered", "answered"],
  ]);
  expect(answered.redelivered).toBeUndefined();
  expect(work.entries()).toBe(1);
  expect(stage.provider.requests.map((request) => request.countText(text))).toEqual([0, 1]);
});

test("a session that is closed after a power failure reports a push in its transcript as unknown, not as never inserted", async () => {
  await using work = await begin();
  const { stage, sessionId } = work;
  const delivery = work.session().push({ customType: "note", content: text, deliverAs: "nextTurn" });
  const putBack = await work.accepted(delivery);
  await work.session().promptAndWait("Go on.");
  expect(work.entries()).toBe(1);
  await stage.restart(putBack);
  expect(await stage.client.call("delivery/get", { deliveryId: delivery.id })).toMatchObject({ state: "accepted" });
  await stage.client.call("session/close", { sessionId });
  const closed = await stage.client.call("delivery/get", { deliveryId: delivery.id });
  expect(closed).toMatchObject({ state: "unknown" });
  expect(isInserted(closed)).toBe(true);
});
