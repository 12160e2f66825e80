import { readdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test, vi } from "vitest";
import type { WireError } from "../../../protocol/errors.ts";
import { ChildSource } from "../../../server/children/child-source.ts";
import { recorder, startCore } from "../../helpers/core.ts";
import { failingConnection } from "../../helpers/failing-connection.ts";

const kindOf = (work: Promise<unknown>) =>
  work.then(
    () => "done",
    (error: WireError) => error.kind,
  );
const forever = Number.MAX_SAFE_INTEGER;
const push = (sessionId: string, deliveryId: string) => ({ sessionId, deliveryId, customType: "t", content: "text" });

test("while the store fails nothing is accepted, created or sent to pi; reads and aborts still work", async () => {
  const connection = failingConnection();
  await using core = await startCore({ connect: connection.connect });
  const { registry, tracker } = core;
  core.behave("keep-running");
  const session = await registry.create({ cwd: core.cwd });
  await tracker.accept(push(session.sessionId, "before"));
  const { signal } = new AbortController();
  await session.prompting.prompt({ text: "Go on.", ifRunning: "refuse", signal });
  connection.fail("open", forever);
  connection.fail("BEGIN", forever);
  expect(await kindOf(tracker.accept(push(session.sessionId, "lost")))).toBe("store_failed");
  expect(await kindOf(session.prompting.prompt({ text: "lost", ifRunning: "followUp", signal }))).toBe("store_failed");
  expect(await kindOf(registry.create({ cwd: core.cwd }))).toBe("store_failed");
  expect(registry.all()).toHaveLength(1);
  expect(tracker.get("before").deliveryId).toBe("before");
  expect(() => tracker.get("lost")).toThrow(/no delivery/);
  expect(session.info().state).toBe("running");
  expect(await session.prompting.abort()).toBe(true);
  connection.fail("open", 0);
  connection.fail("BEGIN", 0);
});

test("changes of a push while the store fails reach the next daemon", async () => {
  const connection = failingConnection();
  await using core = await startCore({ connect: connection.connect });
  const session = await core.registry.create({ cwd: core.cwd });
  const { sessionId } = session;
  await core.tracker.accept(push(sessionId, "d1"));
  connection.fail("open", forever);
  connection.fail("BEGIN", forever);
  expect(await kindOf(core.tracker.accept(push(sessionId, "lost")))).toBe("store_failed");
  const reason = { code: "refused_by_pi", message: "The test wants no more of it." } as const;
  core.tracker.apply(sessionId, "d1", { kind: "dropped", at: 7, reason });
  expect(core.tracker.get("d1").state).toBe("dropped");
  connection.fail("open", 0);
  connection.fail("BEGIN", 0);
  await core.restart();
  expect(core.tracker.get("d1")).toMatchObject({ state: "dropped", reason });
  expect(() => core.tracker.get("lost")).toThrow(/no delivery/);
});

test("a branch that could not be stored creates no session: no client is notified, and its file is deleted", async () => {
  const connection = failingConnection();
  await using core = await startCore({ connect: connection.connect });
  const { registry } = core;
  const session = await registry.create({ cwd: core.cwd });
  const entry = { type: "message", id: "e1", parentId: null, message: { role: "user", content: "Hi." } };
  writeFileSync(session.file, `${JSON.stringify(entry)}\n`, { flag: "a" });
  const list = recorder("list");
  registry.watch.add(list);
  connection.fail("open", forever);
  connection.fail("BEGIN", forever);
  expect(await kindOf(registry.lifecycle.branchOff(session.stored, "e1"))).toBe("store_failed");
  expect(registry.all()).toEqual([session]);
  // Neither the branch nor a lease on it exists.
  const left = readdirSync(dirname(session.file)).filter((name) => !name.includes(session.sessionId));
  expect(left).toEqual([]);
  connection.fail("open", 0);
  connection.fail("BEGIN", 0);
  // Until the store works again nothing has changed.
  await expect.poll(() => kindOf(registry.lifecycle.branchOff(session.stored, "e1"))).toBe("done");
  const [branched, ...others] = registry.all();
  expect([branched?.info().state, others]).toEqual(["hibernated", [session]]);
  await list.until(({ params }) => params.sessionId === branched?.sessionId);
  const told = list.heard.filter(({ params }) => params.sessionId !== session.sessionId);
  expect(told.map(({ params }) => [params.sessionId, params.change])).toEqual([[branched?.sessionId, "created"]]);
  await core.restart();
  expect(core.registry.all().map(({ sessionId }) => sessionId)).toEqual([branched?.sessionId, session.sessionId]);
});

test("a creation that meets a full disk is store_failed, which is retryable, and leaves nothing", async () => {
  await using core = await startCore();
  const full = Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC", path: "/a/file" });
  using _start = vi.spyOn(ChildSource.prototype, "start").mockRejectedValueOnce(full);
  await expect(core.registry.create({ cwd: core.cwd }, "one")).rejects.toMatchObject({
    kind: "store_failed",
    message: expect.stringContaining("/a/file"),
    data: { retryable: true },
  });
  expect([core.registry.all(), core.stored("one")]).toEqual([[], false]);
  expect((await core.registry.create({ cwd: core.cwd }, "one")).state.kind).toBe("idle");
});
