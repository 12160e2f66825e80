import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { WireError } from "../../../protocol/errors.ts";
import { limits } from "../../../server/configuration/limits.ts";
import { CommitMark } from "../../../server/store/commit-mark.ts";
import { connect } from "../../../server/store/connection.ts";
import { Database, type DatabaseOptions } from "../../../server/store/database.ts";
import { PromptStore } from "../../../server/store/prompts.ts";
import { Writer } from "../../../server/store/writer.ts";
import { type ThreadCallbacks, Writers, type WriterThread } from "../../../server/store/writers.ts";
import { patience } from "../../helpers/patience.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "thread-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const file = () => join(directory, "store.db");
const insert = "INSERT OR REPLACE INTO idempotency (method, key, params_hash, result, at) VALUES ('m', ?, 'h', ?, 1)";
const select = "SELECT key, result FROM idempotency ORDER BY key";

function open(options: DatabaseOptions = {}) {
  const database = new Database(file(), () => {}, { maxLocalMs: 0, ...options });
  const write = (key: string, result: string | Uint8Array = "{}") =>
    database.write(database.prepare(insert), key, result);
  return { database, write, [Symbol.dispose]: () => database.close() };
}

/** A database with a writing thread. */
async function threaded(options: DatabaseOptions = {}) {
  const opened = open(options);
  while (!opened.database.isThreaded) await opened.write("first");
  return opened;
}

function onDisk(): readonly unknown[] {
  const other = new DatabaseSync(file(), { readOnly: true });
  try {
    return other
      .prepare(select)
      .all()
      .map((row) => Object.values(row).join());
  } finally {
    other.close();
  }
}

describe("a writing thread", () => {
  test("has a write on disk when its promise resolves, and this thread can read it", async () => {
    using store = await threaded();
    await Promise.all([store.write("a", "1"), store.write("b", "2")]);
    expect(onDisk()).toEqual(["a,1", "b,2", "first,{}"]);
    expect(store.database.prepare(select).all()).toHaveLength(3);
  });

  test("settles promises in the order of the writes, over many transactions", async () => {
    using store = await threaded();
    const settled: number[] = [];
    const writes: Promise<void>[] = [];
    for (let i = 0; i < 300; i += 1) {
      writes.push(store.write(`k${i % 7}`, `${i}`).then(() => void settled.push(i)));
      if (i % 20 === 0) await Promise.race(writes.slice(-1));
    }
    await Promise.all(writes);
    expect(settled).toEqual(Array.from({ length: 300 }, (_, i) => i));
  });

  test("stores bytes unchanged, including a small part of a large piece of memory", async () => {
    using store = await threaded();
    const large = Buffer.alloc(1_000_000, 7);
    const table = store.database.prepare("CREATE TABLE pieces (n INTEGER, bytes BLOB)");
    await store.database.write(table);
    const add = store.database.prepare("INSERT INTO pieces VALUES (?, ?)");
    void store.database.note(add, 1, large.subarray(10, 13));
    await store.database.write(add, 2, new Uint8Array([1, 2]));
    const rows = store.database.prepare("SELECT n, hex(bytes) AS bytes FROM pieces ORDER BY n").all();
    expect(rows).toEqual([
      { n: 1, bytes: "070707" },
      { n: 2, bytes: "0102" },
    ]);
    expect(large.length).toBe(1_000_000);
  });

  test("rejects an invalid statement with its own error, and stores the rest of its transaction", async () => {
    using store = await threaded();
    const wrong = store.database.write(store.database.prepare("INSERT INTO commits VALUES (1, 1)"));
    const beside = store.write("beside");
    await expect(wrong).rejects.toThrow(/UNIQUE/);
    await beside;
    expect(store.database.health).toEqual({ state: "open" });
    await store.write("after");
    expect(onDisk()).toEqual(["after,{}", "beside,{}", "first,{}"]);
  });

  test("has written queued changes when a flush returns, and when it is closed", async () => {
    const store = await threaded();
    void store.write("flushed");
    store.database.flush();
    expect(onDisk()).toEqual(["first,{}", "flushed,{}"]);
    void store.write("closed");
    void store.database.keep("k", store.database.prepare(insert), "kept", "{}");
    store.database.close();
    expect(onDisk()).toEqual(["closed,{}", "first,{}", "flushed,{}", "kept,{}"]);
  });

  test("may be closed while it starts", async () => {
    const store = open();
    await store.write("first");
    expect(store.database.isThreaded).toBe(false);
    store.database.close();
    expect(onDisk()).toEqual(["first,{}"]);
  });

  test("counts commits, and writes the newest number next to the database", async () => {
    const mark = CommitMark.open(join(directory, "mark"));
    const store = await threaded({ mark });
    const before = store.database.commits;
    await store.write("a");
    expect(store.database.commits).toBe(before + 1);
    expect(mark.read()).toBe(before + 1);
    store.database.close();
    mark.close();
  });

  test("ends when nothing is written for a while; later writes happen in this thread", async () => {
    using store = await threaded({ maxIdleThreadMs: 20, maxLocalMs: 0 });
    await vi.waitUntil(() => !store.database.isThreaded, patience);
    await store.write("here");
    expect(onDisk()).toEqual(["first,{}", "here,{}"]);
  });

  test("returns free pages to the file system without blocking writers", async () => {
    using store = await threaded();
    await store.write("large", "x".repeat(500_000));
    await store.database.write(store.database.prepare("DELETE FROM idempotency"));
    const pages = () => Number(store.database.prepare("PRAGMA page_count").get()?.["page_count"]);
    const before = pages();
    await store.database.shrink(1_000);
    expect(pages()).toBeLessThan(before / 2);
  });
});

/** A fake thread: it does its work on request, or dies. */
function stagedThread() {
  const stage = {
    callbacks: undefined as ThreadCallbacks | undefined,
    asked: [] as (() => void)[],
    isHung: false,
    onWait: (_ms: number) => {},
  };
  const startThread = (callbacks: ThreadCallbacks): WriterThread => {
    stage.callbacks = callbacks;
    const writer = new Writer({ path: file(), connection: connect(file()), connect });
    callbacks.onReady();
    return {
      request: (request, onOutcome) => {
        stage.asked.push(() => {
          const outcome = writer.take(request);
          if (stage.callbacks !== undefined) onOutcome(outcome);
        });
      },
      finish: (maxMs) => {
        stage.onWait(maxMs);
        if (stage.isHung) return false;
        for (const act of stage.asked.splice(0)) act();
        return true;
      },
      close: () => writer.close(),
    };
  };
  const die = () => {
    const { callbacks } = stage;
    stage.callbacks = undefined;
    callbacks?.onEnd(new Error("It died."));
  };
  return { stage, startThread, die };
}

test("a thread that reports that it is ready after the store was closed is not used", () => {
  const path = file();
  new Database(path, () => {}).close();
  const local = new Writer({ path, connection: connect(path), connect });
  let ready: () => void = () => {};
  const startThread = ({ onReady }: ThreadCallbacks): WriterThread => {
    ready = onReady;
    return { request: () => {}, finish: () => true, close: () => {} };
  };
  const limits = { maxLocalMs: 0, maxQuickMs: 0, maxIdleThreadMs: 60_000 };
  const writers = new Writers({ local, startThread, ...limits, onFailure: () => {} });
  writers.request({ kind: "commit", changes: [{ sql: insert, parameters: ["k", "{}"] }], isSynced: true }, () => {});
  writers.close();
  ready();
  expect(writers.isThreaded).toBe(false);
});

/** Writers with a thread, of which a test knows who takes which request. */
async function bothWriters(maxQuickMs: number) {
  const { stage, startThread, die } = stagedThread();
  const path = file();
  new Database(path, () => {}).close();
  const local = new Writer({ path, connection: connect(path), connect });
  const limits = { maxLocalMs: 0, maxQuickMs, maxIdleThreadMs: 60_000 };
  const writers = new Writers({ local, startThread, ...limits, onFailure: () => {} });
  const commit = (changes: number) =>
    new Promise<"local" | "thread">((resolve, reject) => {
      const before = stage.asked.length;
      const parameters = (i: number) => [`k${i}`, "{}"];
      const all = Array.from({ length: changes }, (_, i) => ({ sql: insert, parameters: parameters(i) }));
      let by: "local" | "thread" = "local";
      writers.request({ kind: "commit", changes: all, isSynced: true }, ({ failure }) =>
        failure === undefined ? resolve(by) : reject(failure.error),
      );
      if (stage.asked.length === before) return;
      by = "thread";
      stage.asked.shift()?.();
    });
  expect(await commit(100)).toBe("local");
  expect(writers.isThreaded).toBe(true);
  return { writers, local, commit, die, [Symbol.dispose]: () => writers.close() };
}

describe("while there is a thread", () => {
  test("quick transactions stay in the main thread, large ones and one of 65 do not", async () => {
    using both = await bothWriters(Number.POSITIVE_INFINITY);
    expect(await both.commit(100)).toBe("thread");
    const takers: string[] = [];
    for (let i = 0; i < 130; i += 1) takers.push(await both.commit(1));
    expect(takers.filter((by) => by === "thread")).toHaveLength(2);
    expect(takers.indexOf("thread")).toBe(64);
    expect(await both.commit(17)).toBe("thread");
    expect(await both.commit(16)).toBe("local");
  });

  test("the thread takes all of them if the main thread is slow, and it is tried again later", async () => {
    using both = await bothWriters(0.000_001);
    const takers: string[] = [];
    for (let i = 0; i < 5_000 && !takers.includes("local"); i += 1) takers.push(await both.commit(1));
    expect(takers.slice(0, 64)).not.toContain("local");
    expect(takers.at(-1)).toBe("local");
  });

  test("it makes the checkpoints, until it ends", async () => {
    using both = await bothWriters(Number.POSITIVE_INFINITY);
    const every = () => both.writers.connection.prepare("PRAGMA wal_autocheckpoint").get()?.["wal_autocheckpoint"];
    expect(every()).toBe(0);
    both.die();
    expect(every()).toBe(1_000);
  });

  test("a main thread whose connection breaks recovers it itself, without the thread", async () => {
    using both = await bothWriters(Number.POSITIVE_INFINITY);
    both.local.markBroken();
    const broken = both.writers.connection;
    await expect(both.commit(1)).rejects.toThrow("The connection is broken.");
    expect(both.writers.isThreaded).toBe(false);
    both.writers.request({ kind: "recover" }, ({ failure }) => expect(failure).toBeUndefined());
    expect(both.writers.connection === broken).toBe(false);
    expect(await both.commit(1)).toBe("local");
  });
});

const kindOf = (work: Promise<void>) =>
  work.then(
    () => "stored",
    (error: WireError) => error.kind,
  );

describe("a disk that does not answer", () => {
  const mebi = "x".repeat(1024 * 1024);

  test("refuses new work as overloaded above 32 MiB, and keeps the newest of each change", async () => {
    const { stage, startThread } = stagedThread();
    using store = await threaded({ startThread });
    stage.isHung = true;
    const underWay = kindOf(store.write("under way"));
    await vi.waitUntil(() => stage.asked.length > 0, patience);
    const queued = Array.from({ length: 31 }, (_, i) => kindOf(store.write(`q${i}`, mebi)));
    const kept = Array.from({ length: 40 }, (_, i) =>
      kindOf(store.database.keep("k", store.database.prepare(insert), "kept", `${i}${mebi}`)),
    );
    expect(await kindOf(store.write("refused", mebi))).toBe("overloaded");
    expect(store.database.flush()).toBe(false);
    stage.isHung = false;
    stage.asked.shift()?.();
    store.database.flush();
    expect(new Set(await Promise.all([underWay, ...queued, ...kept]))).toEqual(new Set(["stored"]));
    const row = store.database.prepare("SELECT substr(result, 1, 2) AS n FROM idempotency WHERE key = 'kept'").get();
    expect(row).toEqual({ n: "39" });
    const after = kindOf(store.write("after", mebi));
    store.database.flush();
    expect(await after).toBe("stored");
  });

  test("above this many writes, new work and changes with no pending predecessor are refused as overloaded", async () => {
    const { stage, startThread } = stagedThread();
    using store = await threaded({ startThread, limits: { ...limits.store, maxQueued: 4 } });
    stage.isHung = true;
    const underWay = kindOf(store.write("under way"));
    await vi.waitUntil(() => stage.asked.length > 0, patience);
    const keep = (key: string, result: string) =>
      kindOf(store.database.keep(key, store.database.prepare(insert), key, result));
    const waiting = [store.write("a"), store.write("b")].map(kindOf);
    const kept = [keep("k", "1"), keep("l", "1")];
    expect(await kindOf(store.write("c"))).toBe("overloaded");
    expect(await keep("m", "1")).toBe("overloaded");
    kept.push(keep("k", "2"));
    stage.isHung = false;
    stage.asked.shift()?.();
    store.database.flush();
    expect(new Set(await Promise.all([underWay, ...waiting, ...kept]))).toEqual(new Set(["stored"]));
    expect(onDisk()).toEqual(["a,{}", "b,{}", "first,{}", "k,2", "l,1", "under way,{}"]);
  });

  test("is awaited once, and not again before it has answered", async () => {
    const { stage, startThread } = stagedThread();
    using store = await threaded({ startThread });
    const waits: number[] = [];
    stage.isHung = true;
    stage.onWait = (ms) => void waits.push(ms);
    void store.write("under way");
    expect([store.database.flush(), store.database.flush(), store.database.flush()]).toEqual([false, false, false]);
    expect(waits).toHaveLength(1);
    expect(waits[0]).toBeLessThanOrEqual(1_000);
    stage.isHung = false;
    expect(store.database.flush(2_000)).toBe(true);
  });

  test("refuses readers of prompts and runs by name, as long as their results would be outdated", async () => {
    const { stage, startThread } = stagedThread();
    using store = await threaded({ startThread });
    const prompts = new PromptStore(store.database);
    stage.isHung = true;
    void prompts.runs.put("s", { runId: "r", startedAt: 1, promptIds: [] }).catch(() => {});
    const prompt = { promptId: "p", sessionId: "s", text: "t", length: 1, hash: "", state: "queued" as const };
    void prompts.put({ ...prompt, createdAt: 1, updatedAt: 1 }).catch(() => {});
    expect(() => prompts.runs.of("s")).toThrow(/does not respond/);
    expect(() => prompts.open("s")).toThrow(/does not respond/);
    expect(() => prompts.list("s", ["queued"], 1)).toThrow(/does not respond/);
    expect(prompts.runs.of("another")).toEqual([]);
    stage.isHung = false;
    store.database.flush(2_000);
    expect([prompts.runs.of("s").length, prompts.open("s").length]).toEqual([1, 1]);
  });
});

describe("a writing thread that dies", () => {
  test("before its commit leaves the commit to this thread", async () => {
    const { stage, startThread, die } = stagedThread();
    using store = await threaded({ startThread });
    const written = kindOf(store.write("written"));
    await vi.waitUntil(() => stage.asked.length > 0, patience);
    die();
    expect(await written).toBe("stored");
    expect(store.database.isThreaded).toBe(false);
    expect(await kindOf(store.write("after"))).toBe("stored");
    expect(onDisk()).toEqual(["after,{}", "first,{}", "written,{}"]);
  });

  test("after its commit has committed, though it could not report so", async () => {
    const { stage, startThread, die } = stagedThread();
    using store = await threaded({ startThread });
    const written = kindOf(store.write("written"));
    await vi.waitUntil(() => stage.asked.length > 0, patience);
    const { callbacks } = stage;
    stage.callbacks = undefined;
    for (const act of stage.asked.splice(0)) act();
    stage.callbacks = callbacks;
    die();
    expect(await written).toBe("stored");
    expect(store.database.health).toEqual({ state: "open" });
    expect(onDisk()).toEqual(["first,{}", "written,{}"]);
  });

  test("on request has not failed", async () => {
    const { stage, startThread } = stagedThread();
    const failures: unknown[] = [];
    const told = (callbacks: ThreadCallbacks): WriterThread => ({
      ...startThread(callbacks),
      close: () => stage.callbacks?.onEnd(new Error("The writing thread ended.")),
    });
    const database = new Database(file(), (error) => void failures.push(error), { maxLocalMs: 0, startThread: told });
    while (!database.isThreaded) await database.write(database.prepare(insert), "first", "{}");
    database.close();
    expect(failures).toEqual([]);
  });
});
