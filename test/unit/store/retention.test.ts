import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { PromptState } from "../../../protocol/prompt.ts";
import { limits } from "../../../server/configuration/limits.ts";
import { ClosedSessions } from "../../../server/store/closed-sessions.ts";
import { DeliveryStore, type SettledBounds } from "../../../server/store/deliveries.ts";
import { EventStore } from "../../../server/store/events.ts";
import { IdempotencyStore } from "../../../server/store/idempotency.ts";
import type { OpenStore } from "../../../server/store/open-store.ts";
import { PromptStore } from "../../../server/store/prompts.ts";
import { Retention } from "../../../server/store/retention.ts";
import { retentionClock } from "../../../server/store/retention-clock.ts";
import { open, pushOf, storedDelivery, storedPrompt, storedSession } from "../../helpers/stored.ts";

const day = 24 * 60 * 60 * 1_000;

let directory: string;
let store: OpenStore;
/** The time from which the stores count ages. */
let time = 0;
const now = () => time;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "retention-"));
  store = open(directory);
});
afterEach(() => {
  store.close();
  rmSync(directory, { recursive: true });
});

function parts(bounds: Partial<SettledBounds> = {}) {
  const { database } = store;
  const deliveries = new DeliveryStore(database, bounds, now);
  const prompts = new PromptStore(database, now);
  const events = new EventStore(database, limits.storedEvents, now);
  const idempotency = new IdempotencyStore(database, now);
  const kept = {
    keepSettledDeliveriesMs: 30 * day,
    keepEventsMs: day,
    keepLostPromptsMs: 30 * day,
    everyMs: day,
    shrinkPages: 100_000,
    keepSettledPromptsMs: day,
    maxSettledPrompts: 3,
  };
  const log = pino({ level: "silent" });
  const retention = new Retention({ database, deliveries, prompts, events, idempotency, ...kept, now, log });
  return { deliveries, prompts, idempotency, retention };
}

/** Settled long after it was created. */
async function settle(deliveries: DeliveryStore, id: string, at: number, content = "text"): Promise<void> {
  const delivery = storedDelivery(id, "s", { createdAt: at - 100 * day });
  time = at;
  await deliveries.add({ push: pushOf(id, content), delivery });
  await deliveries.update({ ...delivery, state: "answered", updatedAt: at, settledAt: at }, true);
}

function addAt(at: number, add: () => Promise<void>): Promise<void> {
  time = at;
  return add();
}

const ids = (deliveries: DeliveryStore) =>
  deliveries
    .list({ limit: 1_000 })
    .map(({ deliveryId }) => deliveryId)
    .sort();

describe("Retention", () => {
  test("forgets deliveries 30 days after they were settled, however old they are, and never open ones", async () => {
    const { deliveries, retention } = parts();
    const now = 1_000 * day;
    await settle(deliveries, "old", now - 31 * day);
    await settle(deliveries, "young", now - 29 * day);
    await deliveries.add({ push: pushOf("open", "text"), delivery: storedDelivery("open", "s", { createdAt: 1 }) });
    await retention.sweep(now);
    expect(ids(deliveries)).toEqual(["open", "young"]);
    retention.close();
  });

  test("keeps a limited number of completed prompts, the newest", async () => {
    const { prompts, retention } = parts();
    const now = Date.now();
    for (const n of [1, 2, 3, 4, 5])
      await addAt(now + n, () => prompts.add(storedPrompt(`p${n}`, "s", { state: "handled" })));
    await retention.sweep(now);
    expect(prompts.list("s", ["handled"], 10).map(({ promptId }) => promptId)).toEqual(["p5", "p4", "p3"]);
    retention.close();
  });

  test("forgets lost prompts after 30 days, settled ones after a day, open ones never, and results after a day", async () => {
    const { prompts, idempotency, retention } = parts();
    const now = Date.now();
    const add = (promptId: string, state: PromptState, ageDays: number) =>
      addAt(now - ageDays * day, () => prompts.add(storedPrompt(promptId, "s", { state })));
    await add("lost", "lost", 31);
    await add("queued", "queued", 31);
    await add("new", "lost", 29);
    await add("handled", "handled", 2);
    await add("withdrawn", "withdrawn", 0.5);
    time = now;
    await idempotency.finish("m", "k", { paramsHash: "h", subject: "s", result: "{}" }, true);
    await retention.sweep(now);
    expect(prompts.open("s").map(({ promptId }) => promptId)).toEqual(["queued", "new"]);
    expect(["handled", "withdrawn"].map((id) => prompts.get(id)?.state)).toEqual([undefined, "withdrawn"]);
    expect(idempotency.get("m", "k")).toBeDefined();
    await retention.sweep(now + 2 * day);
    expect(store.database.prepare("SELECT count(*) AS n FROM idempotency").get()).toEqual({ n: 0 });
    retention.close();
  });

  test("counts ages independently of the wall clock, and only a little of the time without a daemon", async () => {
    const { deliveries, retention } = parts();
    await settle(deliveries, "settled", 1_000 * day);
    retention.close();
    // Set back a year, or forward, or stopped for a year: ages continue from the newest time in the store.
    for (const [start, expected] of [
      [635, 1_000],
      [1_000.5, 1_000.5],
      [1_365, 1_001],
    ] as const) {
      time = start * day;
      const clock = retentionClock(store.database, now);
      time += 2 * day;
      expect(clock()).toBe((expected + 2) * day);
    }
  });

  test("keeps no more settled deliveries than the limits of number and bytes allow, the newest of them", async () => {
    const few = parts({ maxSettled: 5 });
    for (let i = 0; i < 9; i += 1) await settle(few.deliveries, `n${i}`, day * i);
    await few.deliveries.add({ push: pushOf("open", "text"), delivery: storedDelivery("open", "s") });
    await few.deliveries.limit();
    expect(ids(few.deliveries)).toEqual(["n4", "n5", "n6", "n7", "n8", "open"]);
    few.retention.close();
    const small = parts({ maxSettledBytes: 3_500 });
    for (let i = 0; i < 4; i += 1) await settle(small.deliveries, `x${i}`, day * (20 + i), "x".repeat(1_000));
    await small.deliveries.limit();
    expect(ids(small.deliveries)).toEqual(["open", "x2", "x3"]);
    small.retention.close();
  });

  test("checks the limits while pushes arrive, and not only at intervals", async () => {
    const { deliveries, retention } = parts({ maxSettled: 64 });
    for (let i = 0; i < 300; i += 1) await settle(deliveries, `d${i}`, i);
    expect(ids(deliveries).length).toBeLessThan(64 + 64 / 16 + 3);
    retention.close();
  });

  test("returns free pages to the file system, and the WAL stays small", async () => {
    const { deliveries, retention } = parts();
    const file = join(directory, "store.db");
    for (let i = 0; i < 300; i += 1) await settle(deliveries, `d${i}`, 1, "x".repeat(40_000));
    const pages = () => Number(store.database.prepare("PRAGMA page_count").get()?.["page_count"]);
    const before = pages();
    await retention.sweep(100 * day);
    expect(pages()).toBeLessThan(before / 10);
    expect(statSync(`${file}-wal`).size).toBeLessThan(20 * 1024 * 1024);
    retention.close();
  });
});

test("forgets the sessions that were closed first, also if the clock was set back", async () => {
  const closed = new ClosedSessions(store.database, 2);
  const clock = vi.spyOn(Date, "now").mockReturnValue(5_000);
  try {
    for (const sessionId of ["first", "second", "third"]) {
      await closed.put({ ...storedSession(sessionId), file: directory });
      clock.mockReturnValue(Date.now() - 1_000);
    }
  } finally {
    clock.mockRestore();
  }
  await store.database.written();
  expect(["first", "second", "third"].filter((id) => closed.get(id) !== undefined)).toEqual(["second", "third"]);
});
