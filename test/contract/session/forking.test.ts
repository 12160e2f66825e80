import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { Lease, leasePath } from "../../../server/pi/lease.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Core, recorder, startCore } from "../../helpers/core.ts";

/** A session whose pi can be forked. */
async function forkable(core: Core, ...behaviours: readonly string[]): Promise<Session> {
  core.behave(...behaviours);
  return await core.registry.create({ cwd: core.cwd }, "old");
}

const leases = ({ file }: Session): string[] => readdirSync(dirname(file)).filter((name) => name.includes(".lease"));

test("a fork takes over the pi, and later reports belong to the new session", async () => {
  await using core = await startCore();
  const old = await forkable(core);
  const heard = recorder("old");
  old.subscribe(heard);
  const { pid } = old.info();
  const { session, text } = await core.registry.files.fork("old", "entry");
  expect([session.sessionId, session.info().pid, text]).toEqual(["forked", pid, "What was forked."]);
  expect([old.state.kind, session.state.kind, session.info().generation]).toEqual(["hibernated", "idle", 1]);
  expect(heard.heard.filter(({ method }) => method === "session/replaced").map(({ params }) => params)).toMatchObject([
    { sessionId: "old", from: "old", to: "forked" },
  ]);
  const news = recorder("new");
  session.subscribe(news);
  const before = heard.heard.length;
  await session.prompting.prompt({ text: "Hi.", ifRunning: "refuse" });
  await news.until(({ params }) => params.event?.type === "agent_settled");
  expect(heard.heard.slice(before).filter(({ method }) => method === "session/event")).toEqual([]);
  expect(leases(session)).toEqual(["1_forked.jsonl.lease"]);
  // The old session gets its own pi as soon as it is used.
  await old.awake();
  expect([old.info().pid === pid, old.state.kind, session.state.kind]).toEqual([false, "idle", "idle"]);
  expect(leases(session)).toHaveLength(2);
});

test("a pi that dies before it confirms a fork leaves one session and no lease", async () => {
  for (const behaviour of ["die-on-fork", "die-after-fork"] as const) {
    await using core = await startCore();
    const old = await forkable(core, behaviour);
    await expect(core.registry.files.fork("old", "entry")).rejects.toMatchObject({ kind: "child_exited" });
    expect(core.registry.all().map(({ sessionId }) => sessionId)).toEqual(["old"]);
    await expect.poll(() => leases(old)).toEqual([]);
    core.behave();
    for (const session of core.registry.all()) {
      await session.awake();
      expect([session.sessionId, session.state.kind]).toEqual([session.sessionId, "idle"]);
    }
  }
});

test("a fork that an extension forbids changes nothing", async () => {
  await using core = await startCore();
  const old = await forkable(core, "cancel-fork");
  await expect(core.registry.files.fork("old", "entry")).rejects.toMatchObject({
    kind: "refused_by_pi",
    data: { reason: "cancelled_by_extension" },
  });
  expect([old.state.kind, core.registry.all().length]).toEqual(["idle", 1]);
});

test("a fork whose file is leased by another daemon ends the pi and names the owner", async () => {
  await using core = await startCore();
  await using rival = await startCore();
  const old = await forkable(core);
  const file = old.file.replace(/[^/]*$/, "1_forked.jsonl");
  const header = { type: "session", version: 3, id: "forked", timestamp: new Date(0).toISOString(), cwd: core.cwd };
  writeFileSync(file, `${JSON.stringify(header)}\n`);
  const lease = await Lease.take({ file, daemonId: "rival", stateDir: rival.root, generation: 7 });
  await expect(core.registry.files.fork("old", "entry")).rejects.toMatchObject({
    kind: "session_in_use",
    data: { owner: { stateDir: rival.root, generation: 7 } },
  });
  expect([old.state.kind, existsSync(leasePath(file))]).toEqual(["hibernated", true]);
  expect(core.registry.find("forked")).toBeUndefined();
  await lease.release();
});
