import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { limits } from "../../../server/configuration/limits.ts";
import { SessionRecord } from "../../../server/core/session-record.ts";
import { Receipts } from "../../../server/delivery/session-receipts.ts";
import { DialogRegistry } from "../../../server/dialogs/dialog-registry.ts";
import { PromptLedger } from "../../../server/prompts/prompt-ledger.ts";
import { Runs } from "../../../server/prompts/runs.ts";
import type { Call } from "../../../server/rpc/call.ts";
import { idempotency } from "../../../server/rpc/idempotency.ts";
import { Database } from "../../../server/store/database.ts";
import { DialogStore } from "../../../server/store/dialogs.ts";
import { IdempotencyStore } from "../../../server/store/idempotency.ts";
import { PromptStore } from "../../../server/store/prompts.ts";
import { RunStore } from "../../../server/store/runs.ts";
import { SessionStore } from "../../../server/store/sessions.ts";
import { under } from "../../helpers/policies.ts";
import { storedPrompt, storedSession } from "../../helpers/stored.ts";

// No timer fires: what waits for another transaction to join waits for ever.
let database: Database;
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  database = new Database(":memory:", () => {});
});
afterEach(() => {
  database.close();
  vi.useRealTimers();
});

/** Whether it resolves within a few turns of the event loop. */
async function isSoon(promise: Promise<unknown>): Promise<boolean> {
  let isDone = false;
  const done = promise.then(() => {
    isDone = true;
  });
  for (let turn = 0; turn < 50 && !isDone; turn += 1) await new Promise(setImmediate);
  if (isDone) await done;
  return isDone;
}

const dialog = (dialogId: string) => {
  const asked = { sessionId: "s", requestId: "r", method: "confirm", title: "?", generation: 1 } as const;
  return { dialogId, ...asked, openedAt: 1, deadline: 2, state: "resolved" } as const;
};

test("a session's record is stored and deleted at once where an answer waits for it", async () => {
  const sessions = new SessionStore(database);
  const record = new SessionRecord(storedSession("s"), (stored, isAwaited) => sessions.put(stored, isAwaited));
  expect(await isSoon(record.begun())).toBe(true);
  expect(await isSoon(record.saved())).toBe(true);
  const numbers = record.numbers(() => true);
  numbers.next();
  expect(await isSoon(numbers.release())).toBe(true);
  expect(await isSoon(sessions.delete("s"))).toBe(true);
});

test("a change that no answer waits for joins a later transaction", async () => {
  const sessions = new SessionStore(database);
  const before = database.commits;
  const stored = [
    sessions.put(storedSession("s")),
    new DialogStore(database).put(dialog("d")),
    new PromptStore(database).put(storedPrompt("p", "s")),
    new RunStore(database).put("s", { runId: "r", startedAt: 1, promptIds: [] }),
  ];
  expect(await isSoon(Promise.race(stored))).toBe(false);
  vi.runAllTimers();
  await Promise.all(stored);
  expect(database.commits).toBe(before + 1);
});

test("a call with an idempotency key waits for no other transaction, and neither does one that failed", async () => {
  const call: Call = { signal: new AbortController().signal };
  const policy = idempotency({
    store: new IdempotencyStore(database),
    lookups: { session: () => false, prompt: () => false },
  });
  const bash = under(policy, "session/bash", async () => ({ aborted: false }));
  expect(await isSoon(Promise.resolve(bash({ sessionId: "s", idempotencyKey: "a" }, call)))).toBe(true);
  const failing = under(policy, "session/bash", async () => {
    throw new Error("no");
  });
  const failed = Promise.resolve(failing({ sessionId: "s", idempotencyKey: "b" }, call)).catch(() => "failed");
  expect(await isSoon(failed)).toBe(true);
});

test("the end of a dialog is stored at once if its answer waits for it", async () => {
  const registry = new DialogRegistry(new DialogStore(database), limits.dialogs);
  expect(await isSoon(registry.ended(dialog("a"), true, true))).toBe(true);
  expect(await isSoon(registry.ended(dialog("b"), true))).toBe(false);
});

test("an abort is stored at once", async () => {
  const runs = new Runs({
    sessionId: "s",
    store: new RunStore(database),
    receipts: new Receipts(() => {}),
    onStarted: () => {},
    onEnded: () => {},
    ended: () => ({ method: "session/runSettled", params: {} }) as never,
  });
  runs.begin("r");
  expect(await isSoon(runs.abortSent())).toBe(true);
});

test("the end of a prompt is stored at once, and so is that pi refused it", async () => {
  const ledger = new PromptLedger({
    sessionId: "s",
    store: new PromptStore(database),
    receipts: new Receipts(() => {}),
    file: () => "",
    updated: () => ({}) as never,
    onLost: () => {},
    onChange: () => {},
    maxOpen: 2,
    maxOpenChars: 100,
  });
  for (const [promptId, end] of [
    ["a", () => ledger.handled("a")],
    ["b", () => ledger.refused("b")],
  ] as const) {
    await ledger.store({ promptId, text: "text", hash: "h" });
    const over = ledger.over(promptId, 1_000, new AbortController().signal);
    end();
    expect(await isSoon(over)).toBe(true);
  }
});
