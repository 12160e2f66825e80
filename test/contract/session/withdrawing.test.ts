import { writeFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import type { Withdrawal } from "../../../server/delivery/tracked.ts";
import type { Session } from "../../../server/session/session.ts";
import { type Core, recorder, startCore } from "../../helpers/core.ts";

const cancelled: Withdrawal = {
  kind: "withdrawn",
  at: 1,
  as: "cancelled",
  reason: { code: "cancelled", message: "taken back" },
};

async function session(core: Core, ...behaviours: readonly string[]): Promise<Session> {
  core.behave(...behaviours);
  return await core.registry.create({ cwd: core.cwd });
}

async function push(core: Core, { sessionId, pushing }: Session, deliveryId: string): Promise<void> {
  await core.tracker.accept({ sessionId, customType: "n", content: "x", deliveryId });
  await pushing.handOver();
}

/** An entry as written by a pi that held the push. */
function write(file: string, deliveryId: string): void {
  const entry = { type: "custom_message", id: "a", parentId: null, details: { "pi-rpcd": { deliveryId } } };
  writeFileSync(file, `${JSON.stringify(entry)}\n`, { flag: "a" });
}

function kill({ state }: Session): Promise<void> {
  if (state.kind !== "idle" && state.kind !== "running") throw new Error(state.kind);
  process.kill(state.child.pid, "SIGKILL");
  return state.child.cleaned;
}

describe("a push that is taken back", () => {
  test.each([
    ["is cancelled by a helper that still holds it", "", "cancelled"],
    ["is cancelled once it turns out that pi does not have it", "release-later", "cancelled"],
    ["is inserted when it turns out that pi has it", "release-inserted", "inserted"],
    ["is inserted when the helper reports it in the transcript", "release-too-late", "inserted"],
  ])("%s", async (_title, behaviour, state) => {
    await using core = await startCore();
    const created = await session(core, behaviour);
    await push(core, created, "p");
    await created.pushing.withdraw(["p"], cancelled);
    expect(core.tracker.get("p").state).toBe(state);
  });

  test("before it reached any helper is given up immediately", async () => {
    await using core = await startCore();
    const created = await session(core, "die-on-release");
    const { sessionId } = created;
    await core.tracker.accept({ sessionId, customType: "n", content: "x", deliveryId: "p" });
    await created.pushing.withdraw(["p"], cancelled);
    expect(core.tracker.get("p").state).toBe("cancelled");
    expect(created.state.kind).toBe("idle");
  });

  test.each([
    ["does not have it, is cancelled", false, "cancelled"],
    ["has it, is inserted", true, "inserted"],
  ])("without a child, where the session file %s", async (_title, isWritten, state) => {
    await using core = await startCore();
    const created = await session(core, "");
    const { sessionId } = created;
    const params = { sessionId, customType: "n", content: "x", deliveryId: "p", deliverAs: "nextTurn" } as const;
    await core.tracker.accept(params);
    await created.pushing.handOver();
    await kill(created);
    expect(created.state.kind).toBe("crashed");
    if (isWritten) write(created.file, "p");
    await created.pushing.withdraw(["p"], cancelled);
    expect(core.tracker.get("p").state).toBe(state);
    expect(created.state.kind).toBe("crashed");
  });

  test("while its pi starts during a shutdown is settled without pi, and does not delay the shutdown", async () => {
    await using core = await startCore();
    const created = await session(core, "");
    await kill(created);
    core.behave("no-hello");
    const { sessionId } = created;
    await core.tracker.accept({ sessionId, customType: "n", content: "x", deliveryId: "p" });
    void created.pushing.handOver();
    await expect.poll(() => created.state.kind).toBe("starting");
    const ending = created.shutDown(0);
    await created.pushing.withdraw(["p"], cancelled);
    await ending;
    expect(core.tracker.get("p").state).toBe("cancelled");
  });

  test("from a pi that dies while asked is still decided", async () => {
    await using core = await startCore();
    const created = await session(core, "die-on-release");
    await push(core, created, "p");
    core.behave();
    await created.pushing.withdraw(["p"], cancelled);
    expect(core.tracker.get("p").state).toBe("cancelled");
  });

  test("from a helper with invalid answers is refused, and keeps its state", async () => {
    await using core = await startCore();
    const created = await session(core, "nonsense-on-release");
    await push(core, created, "p");
    await expect(created.pushing.withdraw(["p"], cancelled)).rejects.toThrow();
    expect(core.tracker.get("p").state).toBe("held");
  });
});

describe("a push whose pi does not start", () => {
  test("reports why it waits, and is delivered once pi starts again", async () => {
    await using core = await startCore();
    const created = await session(core, "");
    await kill(created);
    core.behave("exit-at-start");
    const heard = recorder();
    created.subscribe(heard);
    await push(core, created, "p");
    const { params } = await heard.until((one) => one.params.delivery?.reason?.code === "not_started");
    expect(params.delivery).toMatchObject({ state: "accepted", reason: { message: expect.stringContaining("pi") } });
    core.behave();
    // The next attempt happens by itself.
    await heard.until((one) => one.params.delivery?.state === "held");
    expect(core.tracker.get("p").reason).toBeUndefined();
  });

  test("fails after three attempts if the helper is missing", async () => {
    await using core = await startCore();
    const created = await session(core, "");
    await kill(created);
    core.behave("other-link");
    const heard = recorder();
    created.subscribe(heard);
    await push(core, created, "p");
    const { params } = await heard.until((one) => one.params.delivery?.state === "failed");
    expect(params.delivery.reason.code).toBe("link_failed");
  });
});
