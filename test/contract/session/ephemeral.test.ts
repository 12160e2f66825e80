import { readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { sessionPage } from "../../../server/session/session-page.ts";
import { recorder, startCore } from "../../helpers/core.ts";

const signal = new AbortController().signal;
const push = { customType: "t", content: "text", mode: "steer" } as const;

test("an ephemeral session has no file and ends with its child; no new session replaces it", async () => {
  await using core = await startCore();
  const session = await core.registry.create({ cwd: core.cwd, ephemeral: true });
  const { sessionId } = session;
  expect(session.info()).toMatchObject({ ephemeral: "living", file: "", state: "idle", generation: 1 });
  expect(readdirSync(join(core.root, "run")).filter((name) => name.endsWith(".jsonl"))).toEqual([]);
  const heard = recorder();
  session.subscribe(heard);
  const delivery = await core.tracker.accept({ sessionId, ...push, triggersRun: false } as never);

  const { state } = session;
  if (state.kind !== "idle") throw new Error(state.kind);
  process.kill(state.child.pid, "SIGKILL");
  await state.child.cleaned;
  await heard.until(({ params }) => params.session?.state === "crashed");
  expect(session.info()).toMatchObject({ ephemeral: "lost", generation: 1 });
  await expect(session.awake()).rejects.toMatchObject({ kind: "session_lost" });
  await expect(session.prompting.prompt({ text: "hi", ifRunning: "refuse" })).rejects.toMatchObject({
    kind: "session_lost",
  });
  await expect(session.calls.send({ type: "get_state" }, signal)).rejects.toMatchObject({ kind: "session_lost" });
  expect(session.loss?.message).toMatch(/another one/);
  await heard.until(({ params }) => params.delivery?.deliveryId === delivery.deliveryId && isOver(params.delivery));
  expect(session.info()).toMatchObject({ ephemeral: "lost", generation: 1, pendingDeliveries: 0 });
  await core.registry.close(sessionId);
});

test("the next daemon reports an ephemeral session as lost", async () => {
  await using core = await startCore();
  const { sessionId } = await core.registry.create({ cwd: core.cwd, ephemeral: true, labels: { a: "b" } });
  await core.restart();
  const session = core.registry.get(sessionId);
  expect(session.info()).toMatchObject({ ephemeral: "lost", labels: { a: "b" } });
  await expect(session.awake()).rejects.toMatchObject({ kind: "session_lost" });
});

test("sessions are listed by label and state, in pages that skip none", async () => {
  await using core = await startCore();
  const create = async (labels: Record<string, string>) =>
    (await core.registry.create({ cwd: core.cwd, labels })).sessionId;
  const ids = [await create({ team: "a" }), await create({ team: "b" }), await create({ team: "a", x: "" })].reverse();
  const list = (params: Parameters<typeof sessionPage>[1]) => {
    const { sessions, next } = sessionPage(core.registry, params);
    return { ids: sessions.map(({ sessionId }) => sessionId), next };
  };
  expect(list({}).ids).toEqual(ids);
  expect(list({ label: "team=a" }).ids).toEqual([ids[0], ids[2]]);
  expect(list({ label: "x" }).ids).toEqual([ids[0]]);
  expect(list({ label: "constructor" }).ids).toEqual([]);
  expect(list({ state: "crashed" }).ids).toEqual([]);
  const first = list({ limit: 2 });
  expect(first.ids).toEqual(ids.slice(0, 2));
  await core.registry.close(ids[1] ?? "");
  const second = list({ limit: 2, ...(first.next === undefined ? {} : { after: first.next }) });
  expect(second).toEqual({ ids: ids.slice(2), next: undefined });
});

function isOver({ reason }: { readonly reason?: { readonly code: string } }): boolean {
  return reason?.code === "session_lost";
}
