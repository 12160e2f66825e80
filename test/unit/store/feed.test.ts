import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Dialog } from "../../../protocol/dialog.ts";
import { limits } from "../../../server/configuration/limits.ts";
import { DeliveryStore } from "../../../server/store/deliveries.ts";
import { DialogStore } from "../../../server/store/dialogs.ts";
import { type FeedLimits, FeedStore } from "../../../server/store/feed.ts";
import type { OpenStore } from "../../../server/store/open-store.ts";
import { RunStore } from "../../../server/store/runs.ts";
import { open, pushOf, storedDelivery, storedSession } from "../../helpers/stored.ts";

let directory: string;
let store: OpenStore;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "feed-"));
  store = open(directory);
});
afterEach(() => {
  store.close();
  rmSync(directory, { recursive: true });
});

const feedOf = (bounds: Partial<FeedLimits> = {}): FeedStore =>
  new FeedStore(store.database, { ...limits.feed, ...bounds });

/** The events of a feed after a number, as short texts. */
const said = (feed: FeedStore, after = 0): readonly string[] =>
  feed
    .read(after, 1_000)
    .map(({ event: { seq, kind, state, sessionId, runId = "", deliveryId = "", dialogId = "" } }) =>
      [seq, kind, state, sessionId, runId || deliveryId || dialogId].filter((part) => part !== "").join(" "),
    );

const dialog = (state: Dialog["state"]): Dialog => ({
  ...{ dialogId: "dialog-1", sessionId: "s", requestId: "r", method: "confirm", title: "secret title", generation: 1 },
  ...{ openedAt: 1, deadline: 2, state },
});

test("the feed has a reference for every change that clients can notice, and none for other writes", async () => {
  const feed = feedOf();
  const { sessions, database } = store;
  const [deliveries, dialogs, runs] = [new DeliveryStore(database), new DialogStore(database), new RunStore(database)];
  const session = storedSession("s", { cwd: "/work", labels: { team: "a" } });
  await sessions.put({ ...session, isBeginning: true });
  expect(said(feed)).toEqual([]);
  await sessions.put(session);
  await sessions.put({ ...session, reservedSeq: 1_000, updatedAt: 2 });
  await sessions.put({ ...session, name: "other", updatedAt: 3 });
  await runs.put("s", { runId: "run-1", startedAt: 1, promptIds: [] });
  await runs.end("s", "run-1", "settled");
  expect(runs.of("s")).toEqual([]);
  const delivery = storedDelivery("delivery-1", "s");
  await deliveries.add({ push: pushOf("delivery-1", "text"), delivery });
  await deliveries.update({ ...delivery, state: "held" }, false);
  await deliveries.update({ ...delivery, state: "delivered", settledAt: 5 }, false);
  await deliveries.update({ ...delivery, state: "delivered", settledAt: 5, updatedAt: 6 }, false);
  await deliveries.update({ ...delivery, state: "answered", settledAt: 5, updatedAt: 7 }, true);
  await dialogs.put(dialog("open"));
  await dialogs.put(dialog("resolved"));
  await sessions.delete("s");
  expect(said(feed)).toEqual([
    "1 session created s",
    "2 session changed s",
    "3 run settled s run-1",
    "4 delivery delivered s delivery-1",
    "5 delivery answered s delivery-1",
    "6 dialog open s dialog-1",
    "7 dialog resolved s dialog-1",
    "8 session closed s",
  ]);
  const rows = feed.read(0, 100);
  expect(new Set(rows.map(({ scope }) => JSON.stringify(scope)))).toEqual(
    new Set([JSON.stringify({ cwd: "/work", labels: { team: "a" } })]),
  );
  expect(JSON.stringify(rows)).not.toContain("secret title");
});

test("a reference is stored together with its subject, or not at all", async () => {
  const feed = feedOf();
  const { database, sessions } = store;
  const broken = database.prepare("INSERT INTO commits VALUES (1, 1)");
  const insert = database.prepare(
    "INSERT INTO sessions (session_id, cwd, file, record, created_at, updated_at) VALUES ('x', '/', '/f', '{}', 1, 1)",
  );
  await expect(
    Promise.all([database.together("g", insert), database.together("g", broken), sessions.put(storedSession("s"))]),
  ).rejects.toThrow();
  await database.written();
  expect(said(feed)).toEqual(["1 session created s"]);
});

test("a run whose beginning was never stored has its end in the feed", async () => {
  const feed = feedOf();
  await new RunStore(store.database).end("s", "run-1", "interrupted");
  expect(said(feed)).toEqual(["1 run interrupted s run-1"]);
  // Its owner is not known here.
  expect(feed.read(0, 1)[0]?.scope).toBeUndefined();
});

test("numbers continue after the store was opened again, in the same feed", async () => {
  const { epoch } = feedOf();
  await store.sessions.put(storedSession("s"));
  store.close();
  store = open(directory);
  const feed = feedOf();
  expect(feed).toMatchObject({ epoch, cursor: 1 });
  await store.sessions.delete("s");
  expect(said(feed, 1)).toEqual(["2 session closed s"]);
});

test("a store that is created again has another feed, which begins with the existing sessions", async () => {
  const { epoch } = feedOf();
  await store.sessions.put(storedSession("s"));
  await store.sessions.put(storedSession("t"));
  store.close();
  rmSync(join(directory, "store.db"));
  rmSync(join(directory, "store.db-wal"), { force: true });
  store = open(directory);
  const feed = feedOf();
  expect(feed.epoch).not.toBe(epoch);
  expect(said(feed)).toEqual(["1 session created s", "2 session created t"]);
});

test("the feed is bounded by its events and their bytes, and no number is used again", async () => {
  const runs = new RunStore(store.database);
  const end = (n: number): Promise<void> => runs.end("s", `run-${n}`, "settled");
  const feed = feedOf({ maxFeedEvents: 32 });
  for (let n = 1; n <= 33; n += 1) await end(n);
  await store.database.written();
  expect(feed.read(0, 100).map(({ event }) => event.seq)).toEqual(Array.from({ length: 30 }, (_, i) => i + 4));
  const small = feedOf({ maxFeedBytes: 1 });
  await store.database.written();
  await end(34);
  await store.database.written();
  expect(said(small)).toEqual(["34 run settled s run-34"]);
  await end(35);
  expect(small.cursor).toBe(35);
});
