import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { WireError } from "../../../protocol/errors.ts";
import { limits } from "../../../server/configuration/limits.ts";
import { Link } from "../../../server/pi/link.ts";
import { type Core, startCore } from "../../helpers/core.ts";

const caller = { mayReadAny: true, signal: new AbortController().signal };

/** Limits for documents and for waiting calls. */
function bounded(more: Partial<Record<keyof typeof limits.context, number>>) {
  return { limits: { context: { ...limits.context, ...more } as typeof limits.context } };
}

function documentOf(text: string) {
  return { format: "pi-rpcd/context", version: 1, items: [{ role: "user", content: text, timestamp: 1 }] };
}

test("session files are read while the byte budget allows it, and refused otherwise", async () => {
  await using core = await startCore(bounded({ maxHeldBytes: 1, maxWaiting: 2 }));
  const { contexts } = core.registry;
  const sessions = join(core.root, "agent", "sessions");
  mkdirSync(sessions, { recursive: true });
  const path = join(sessions, "long.jsonl");
  const header = { type: "session", version: 3, id: "s", timestamp: "2026-01-01T00:00:00.000Z", cwd: core.cwd };
  const message = { role: "user", content: [{ type: "text", text: "word ".repeat(200_000) }], timestamp: 1 };
  const entry = { type: "message", id: "aaaaaaaa", parentId: null, timestamp: header.timestamp, message };
  writeFileSync(path, `${JSON.stringify(header)}\n${JSON.stringify(entry)}\n`);
  const asked = [1, 2, 3, 4].map(() => contexts.export({ path, output: "file" }, caller));
  const outcomes = (await Promise.allSettled(asked)).map((outcome) =>
    outcome.status === "fulfilled" ? "done" : outcome.reason.kind,
  );
  expect(outcomes.toSorted()).toEqual(["done", "done", "done", "overloaded"]);
  // The budget is released whatever the outcome.
  const leafId = "none";
  for (let time = 0; time < 2; time += 1) {
    await expect(contexts.export({ path, leafId }, caller)).rejects.toMatchObject({ kind: "entry_not_found" });
    const context = { document: documentOf("word ".repeat(200_000)), maxTokens: 1, onOverflow: "error" } as const;
    await expect(contexts.inspect({ context }, caller)).rejects.toMatchObject({ kind: "context_over_budget" });
    const created = core.registry.create({ cwd: core.cwd, context }, undefined, () => {}, caller);
    await expect(created).rejects.toMatchObject({ kind: "context_over_budget" });
  }
  const context = { document: documentOf("word ".repeat(200_000)), maxTokens: null, until: "through" } as const;
  for (const ephemeral of [false, true, true]) {
    const created = core.registry.create({ cwd: core.cwd, ephemeral, context }, undefined, () => {}, caller);
    const { sessionId } = await created;
    expect((await contexts.export({ sessionId }, caller)).diagnostics).toBeDefined();
  }
});

function ephemeral(core: Core, signal = caller.signal) {
  const context = { document: documentOf("Hi."), until: "through" } as const;
  return core.registry.create({ cwd: core.cwd, ephemeral: true, context }, undefined, () => {}, { ...caller, signal });
}

test.each<[string, () => void, object]>([
  [
    "the disk is full",
    () => vi.spyOn(Link.prototype, "sendContext").mockRejectedValueOnce(systemError("ENOSPC")),
    { kind: "context_transport_failed", data: { reason: "ENOSPC" } },
  ],
  [
    "the daemon may open no file",
    () => vi.spyOn(Link.prototype, "sendContext").mockRejectedValueOnce(systemError("EMFILE")),
    { kind: "overloaded", data: { code: "EMFILE" } },
  ],
  [
    "the helper does not answer in time",
    () => vi.spyOn(Link.prototype, "sendContext").mockReturnValueOnce(new Promise(() => {})),
    {
      kind: "context_transport_failed",
      data: { reason: "timeout" },
      message: expect.stringMatching(/; its pi was ended\.$/),
    },
  ],
  [
    "the helper refuses it",
    () => vi.spyOn(Link.prototype, "sendContext").mockRejectedValueOnce(new WireError("link_failed", "no")),
    { kind: "context_transport_failed", data: { reason: "refused" } },
  ],
])("an ephemeral session stays when %s at a wake, and its next pi has the context", async (_case, fail, expected) => {
  await using core = await startCore({ contexts: { ackTimeoutMs: 300 } });
  const session = await ephemeral(core);
  await session.supervisor.hibernate(true);
  fail();
  try {
    await expect(session.awake()).rejects.toMatchObject(expected);
  } finally {
    vi.restoreAllMocks();
  }
  await session.settled();
  expect(core.registry.find(session.sessionId)).toBe(session);
  await session.awake();
  expect(session.info()).toMatchObject({ state: "idle", ephemeral: "living" });
});

test("closing a session or the daemon does not wait for a helper that does not confirm the context", async () => {
  await using core = await startCore({ contexts: { ackTimeoutMs: 10 * 60_000 } });
  const session = await ephemeral(core);
  await session.supervisor.hibernate(true);
  core.behave("mute-on-context");
  const sent = vi.spyOn(Link.prototype, "sendContext");
  const asked = (count: number) => expect.poll(() => sent.mock.calls.length).toBe(count);
  try {
    const waking = session.awake();
    waking.catch(() => {});
    await asked(1);
    await core.registry.close(session.sessionId);
    await expect(waking).rejects.toMatchObject({ kind: "session_closed" });
    // Neither does a call whose caller has gone.
    const gone = new AbortController();
    const given = ephemeral(core, gone.signal);
    given.catch(() => {});
    await asked(2);
    gone.abort(new Error("Nobody waits."));
    await expect(given).rejects.toThrow("Nobody waits.");
    expect(core.registry.all()).toEqual([]);
    const last = ephemeral(core);
    last.catch(() => {});
    await asked(3);
    await core.registry.shutdown();
    await expect(last).rejects.toMatchObject({ kind: "shutting_down" });
  } finally {
    vi.restoreAllMocks();
  }
});

function systemError(code: string): Error {
  return Object.assign(new Error(code), { code });
}
