import { spawn } from "node:child_process";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Delivery } from "../../../protocol/delivery.ts";
import { CommitMark } from "../../../server/store/commit-mark.ts";
import { Database } from "../../../server/store/database.ts";
import { DeliveryStore } from "../../../server/store/deliveries.ts";
import { RunStore } from "../../../server/store/runs.ts";
import { SessionStore } from "../../../server/store/sessions.ts";
import type { StoredSession } from "../../../server/store/stored-session.ts";
import { failingConnection } from "../../helpers/failing-connection.ts";
import { patience } from "../../helpers/patience.ts";
import { pushOf, storedDelivery, storedSession } from "../../helpers/stored.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "durability-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const file = () => join(directory, "store.db");
const insert =
  "INSERT OR REPLACE INTO idempotency (method, key, params_hash, result, at) VALUES ('m', ?, 'h', '{}', 1)";

function keysIn(path: string): readonly unknown[] {
  const other = new DatabaseSync(path, { readOnly: true });
  try {
    return other
      .prepare("SELECT key FROM idempotency ORDER BY key")
      .all()
      .map(({ key }) => key);
  } finally {
    other.close();
  }
}

/** A database whose commits are observed. */
function observed() {
  const connection = failingConnection();
  const database = new Database(file(), () => {}, { connect: connection.connect });
  /** Whether what `work` writes is synced. */
  const isSynced = async (work: () => Promise<void>): Promise<boolean | undefined> => {
    const before = connection.synced.length;
    await work();
    expect(connection.synced).toHaveLength(before + 1);
    return connection.synced.at(-1);
  };
  return { connection, database, isSynced, [Symbol.dispose]: () => database.close() };
}

test.each(["here", "thread"])("an unsynced write survives kill -9 once its promise resolves (%s)", async (where) => {
  const script = join(import.meta.dirname, "..", "..", "fixtures", "killed-writer.ts");
  const child = spawn(process.execPath, [...process.execArgv, script, file(), where], { stdio: "inherit" });
  expect(await once(child, "exit")).toEqual([null, "SIGKILL"]);
  expect(keysIn(file())).toEqual(["first", "kept", "noted"]);
});

test("the mark has the newest synced commit: an unsynced one is synced after a while", async () => {
  const mark = CommitMark.open(join(directory, "mark"));
  const database = new Database(file(), () => {}, { mark });
  await database.write(database.prepare(insert), "a");
  const synced = mark.read();
  expect(synced).toBe(database.commits);
  await database.note(database.prepare(insert), "b");
  expect(mark.read()).toBe(synced);
  expect(database.commits).toBe((synced ?? 0) + 1);
  await vi.waitUntil(() => mark.read() === database.commits, patience);
  await database.note(database.prepare(insert), "c");
  database.close();
  expect(mark.read()).toBe(database.commits);
  mark.close();
});

test("a write that must be synced syncs its whole transaction", async () => {
  using store = observed();
  const statement = store.database.prepare(insert);
  expect(await store.isSynced(() => store.database.note(statement, "a"))).toBe(false);
  const both = [store.database.note(statement, "b"), store.database.write(statement, "c")];
  expect(await store.isSynced(async () => void (await Promise.all(both)))).toBe(true);
});

test("after a failed sync, what was not synced before it is in the database and not only in the WAL", async () => {
  using store = observed();
  await store.database.note(store.database.prepare(insert), "unsynced");
  store.connection.fail("COMMIT");
  await expect(store.database.write(store.database.prepare(insert), "lost")).rejects.toThrow(/cannot be written/);
  expect(store.connection.opened).toBe(2);
  const alone = join(directory, "alone.db");
  copyFileSync(file(), alone);
  expect(keysIn(alone)).toEqual(["unsynced"]);
});

test("while the store fails, nothing is unsynced: an earlier change of the same row may be unwritten", async () => {
  using store = observed();
  const statement = store.database.prepare(insert);
  store.database.prepare("PRAGMA max_page_count = 40").get();
  await expect(store.database.keep("k", statement, "x".repeat(500_000))).rejects.toThrow(/full/);
  expect(store.database.health.state).toBe("failing");
  expect(await store.isSynced(() => store.database.keepUnsynced("l", statement, "small"))).toBe(true);
  store.database.prepare("PRAGMA max_page_count = 1000000").get();
});

describe("which changes are synced", () => {
  const parked = { state: "parked", at: 1 } as const;
  const attempt = { requestId: "r", n: 1, preparedAt: 1, payload: "unchecked" } as const;
  test.each<[string, Partial<Delivery>, boolean]>([
    ["held", { state: "held" }, false],
    ["inserted", { state: "inserted", insertedAt: 1 }, false],
    ["parked before its first request", { state: "parked" }, true],
    ["resent before its first request", { state: "held", history: [parked] }, true],
    ["prepared", { state: "prepared", attempts: [attempt] }, true],
    ["inserted again after a request", { state: "inserted", attempts: [attempt] }, true],
    ["delivered", { state: "delivered", attempts: [attempt], settledAt: 1 }, true],
    ["failed", { state: "failed", settledAt: 1 }, true],
  ])("a push that is %s", async (_, change, expected) => {
    using store = observed();
    const deliveries = new DeliveryStore(store.database);
    const delivery = storedDelivery("d", "s");
    expect(await store.isSynced(() => deliveries.add({ push: pushOf("d", "text"), delivery }))).toBe(true);
    expect(await store.isSynced(() => deliveries.update({ ...delivery, ...change }, false))).toBe(expected);
  });

  const mark = { size: 1, inode: 1, mtimeMs: 1, read: 1, tailSum: 1 };
  test.each<[string, Partial<StoredSession>, boolean]>([
    ["the time of the last activity", { updatedAt: 2 }, false],
    ["its file while a child writes it", { fileMark: { ...mark, size: 2, isOpen: true } }, false],
    ["returned numbers", { reservedSeq: 4 }, false],
    ["reserved numbers", { reservedSeq: 6 }, true],
    ["its name", { name: "Another" }, true],
    ["its generation", { generation: 3 }, true],
  ])("a session's %s", async (_, change, expected) => {
    using store = observed();
    const sessions = new SessionStore(store.database);
    const session = storedSession("s", { fileMark: { ...mark, isOpen: true } });
    expect(await store.isSynced(() => sessions.put(session))).toBe(true);
    expect(await store.isSynced(() => sessions.put({ ...session, ...change }))).toBe(expected);
  });

  test("that a child begins to write the session's file", async () => {
    using store = observed();
    const sessions = new SessionStore(store.database);
    const session = storedSession("s", { fileMark: { ...mark, isOpen: false } });
    await sessions.put(session);
    const opened = { ...session, fileMark: { ...mark, isOpen: true } };
    expect(await store.isSynced(() => sessions.put(opened))).toBe(true);
  });

  test("the end of a run, not its beginning", async () => {
    using store = observed();
    const runs = new RunStore(store.database);
    expect(await store.isSynced(() => runs.put("s", { runId: "r", startedAt: 1, promptIds: [] }))).toBe(false);
    expect(await store.isSynced(() => runs.end("s", "r", "settled"))).toBe(true);
  });
});
