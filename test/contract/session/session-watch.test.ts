import { expect, test } from "vitest";
import { limits } from "../../../server/configuration/limits.ts";
import { recorder, startCore } from "../../helpers/core.ts";

const changes = ({ heard }: ReturnType<typeof recorder>) => heard.map(({ params: { change } }) => change);

test("subscribers to the list are notified of created, changed and closed sessions, but not of every step", async () => {
  await using core = await startCore();
  const [list, other] = [recorder("list"), recorder("other")];
  core.registry.watch.add(list);
  core.registry.watch.add(other);
  const session = await core.registry.create({ cwd: core.cwd });
  const { sessionId } = session;
  const created = await list.until(({ params }) => params.change === "created");
  expect(created.method).toBe("daemon/sessionChanged");
  expect(created.params).toMatchObject({ sessionId, session: { state: "idle", generation: 1 } });
  await session.prompting.prompt({ text: "x", ifRunning: "refuse" });
  await session.settled();
  await session.supervisor.hibernate(false);
  await list.until(({ params }) => params.session?.state === "hibernated");
  expect(core.registry.watch.remove("other")).toBe(true);
  await core.registry.close(sessionId);
  const closed = await list.until(({ params }) => params.change === "closed");
  expect(closed.params).toEqual({ sessionId, change: "closed" });
  expect(changes(other)).not.toContain("closed");
  // A prompt alone changes a session three times.
  expect(changes(list).length).toBeLessThan(8);
});

test("deliveries and dialogs of all sessions are told to those that ask, within the limits of their token", async () => {
  await using core = await startCore();
  const [all, limited, list] = [recorder("all"), recorder("limited"), recorder("list")];
  const { watch } = core.registry;
  watch.add(all, { deliveries: true, dialogs: true });
  watch.add(limited, { deliveries: true, dialogs: true, covers: ({ cwd }) => cwd !== core.cwd });
  watch.add(list);
  const session = await core.registry.create({ cwd: core.cwd, dialogPolicy: { kind: "wait" } });
  const { sessionId } = session;
  const push = await core.tracker.accept({ sessionId, deliveryId: "d-1", customType: "a", content: "b" });
  const told = await all.until(({ method }) => method === "daemon/deliveryUpdated");
  expect(told.params).toMatchObject({ sessionId, delivery: { deliveryId: push.deliveryId } });
  await session.prompting.prompt({
    text: `gate ${JSON.stringify([{ method: "confirm", message: "?" }])}`,
    ifRunning: "refuse",
  });
  const opened = await all.until(({ params }) => params.change === "opened");
  const { dialogId } = opened.params;
  expect(opened.params).toMatchObject({
    sessionId,
    dialog: { dialogId, method: "confirm", message: "?", state: "open" },
  });
  core.dialogs.respond(dialogId, { confirmed: true }, { clientId: "c", name: "Ada" });
  const resolved = await all.until(({ params }) => params.change === "resolved");
  expect(resolved.params).toMatchObject({
    dialogId,
    resolution: { how: "answered", by: "client", client: { clientId: "c", name: "Ada" } },
  });
  expect(limited.heard).toEqual([]);
  await list.until(() => true);
  expect(new Set(list.heard.map(({ method }) => method))).toEqual(new Set(["daemon/sessionChanged"]));
  expect(all.heard.map(({ method }) => method)).not.toContain("daemon/sessionChanged");
});

test("the feed has a session once clients can know it; one whose creation was killed appears at the next start", async () => {
  await using core = await startCore({ limits: { child: { ...limits.child, afterEofMs: 200 } } });
  const told = async (): Promise<readonly string[]> => {
    const reader = recorder();
    const { cursor } = core.feed.follow(reader, { after: 0 });
    if (cursor > 0) await reader.until(({ params }) => params.seq === cursor);
    core.feed.unfollow(reader.id);
    return reader.heard.map(({ params }) => `${params.state} ${params.sessionId}`);
  };
  core.behave("exit-at-start");
  await expect(core.registry.create({ cwd: core.cwd }, "failed")).rejects.toThrow();
  expect(await told()).toEqual([]);
  core.behave("hang-at-start", "no-hello");
  const creating = core.registry.create({ cwd: core.cwd }, "half").catch(() => {});
  await expect.poll(() => core.stored("half")).toBe(true);
  expect(await told()).toEqual([]);
  await core.kill();
  await creating;
  expect(core.registry.find("half")).toBeDefined();
  await core.registry.close("half");
  expect(await told()).toEqual(["created half", "closed half"]);
});
