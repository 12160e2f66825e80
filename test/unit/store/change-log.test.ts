import { execFileSync } from "node:child_process";
import fs, {
  closeSync,
  cpSync,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { limits } from "../../../server/configuration/limits.ts";
import { deferred } from "../../../server/lib/deferred.ts";
import { ChangeLog, LogAppender, logFiles, newestLogged, recordsIn } from "../../../server/store/change-log.ts";
import { CommitMark } from "../../../server/store/commit-mark.ts";
import { connect } from "../../../server/store/connection.ts";
import { Copier } from "../../../server/store/copier.ts";
import { writeCopy } from "../../../server/store/copy.ts";
import { Database } from "../../../server/store/database.ts";
import { DeliveryStore } from "../../../server/store/deliveries.ts";
import { EventStore } from "../../../server/store/events.ts";
import { FeedStore } from "../../../server/store/feed.ts";
import { migrate, NewerStoreError, schemaVersion } from "../../../server/store/migrations.ts";
import type { OpenStore } from "../../../server/store/open-store.ts";
import { replay } from "../../../server/store/replay.ts";
import { Writer, type WriterRequest } from "../../../server/store/writer.ts";
import type { ThreadCallbacks, WriterThread } from "../../../server/store/writers.ts";
import { failingConnection } from "../../helpers/failing-connection.ts";
import { patience } from "../../helpers/patience.ts";
import { copyStore, fillStore, open, pushOf, rowsIn, storedDelivery, storedSession } from "../../helpers/stored.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "change-log-"));
});
afterEach(() => rmSync(root, { recursive: true }));

let copies = 0;
function snapshotOf(directory: string): string {
  copies += 1;
  const to = join(root, `snapshot${copies}`);
  cpSync(directory, to, { recursive: true });
  return to;
}
const at = (directory: string, name: string) => join(directory, name);
const inThisThread = { write: async (path: string) => writeCopy(path), limits: limits.storeCopies };

let pushes = 0;
async function pushOne({ database }: OpenStore, sessionId = "s1"): Promise<void> {
  pushes += 1;
  const delivery = storedDelivery(`later-${pushes}`, sessionId);
  await new DeliveryStore(database).add({ push: pushOf(delivery.deliveryId, "later"), delivery });
}

/** A store with a copy, and with changes before and after it. */
async function copiedStore(directory = at(root, "store")): Promise<OpenStore> {
  fs.mkdirSync(directory, { recursive: true });
  const store = open(directory, { copies: inThisThread });
  await fillStore(store, 4);
  // A gap between row numbers.
  await store.database.write(store.database.prepare("DELETE FROM deliveries WHERE delivery_id = 'd-s1-1'"));
  await store.copier.copy();
  await store.sessions.put(storedSession("s4"));
  await pushOne(store, "s4");
  await new DeliveryStore(store.database).update(
    storedDelivery("d-s1-0", "s1", { state: "failed", settledAt: 3 }),
    true,
  );
  return store;
}

/** Opens the store without its database. */
function rebuilt(directory: string): { rows: readonly string[]; damage: OpenStoreDamage; epoch: string } {
  for (const name of ["store.db", "store.db-wal"]) rmSync(at(directory, name), { force: true });
  const store = open(directory);
  const rows = rowsIn(store.database);
  const [damage] = store.info().damaged;
  const { epoch } = new FeedStore(store.database, limits.feed);
  store.close();
  if (damage === undefined) throw new Error("The damage was not reported.");
  return { rows, damage, epoch };
}
type OpenStoreDamage = ReturnType<OpenStore["info"]>["damaged"][number];

describe("the copy and the log", () => {
  test("restore everything that the database had, in another feed", async () => {
    const store = await copiedStore();
    const rows = rowsIn(store.database);
    const { epoch } = new FeedStore(store.database, limits.feed);
    store.close();
    const after = rebuilt(at(root, "store"));
    expect(after.rows).toEqual(rows);
    expect(after.damage.lost).toEqual({ transactions: 0, sessionIds: [] });
    expect(after.epoch).not.toBe(epoch);
  });

  test("are private files, and leave out the frames of events", async () => {
    const store = await copiedStore();
    const events = new EventStore(store.database, limits.storedEvents);
    await events.put("s1", 1, 1, [Buffer.from("a frame of an event")]);
    store.close();
    for (const name of ["store.db.copy", "store.changes"]) {
      expect(statSync(at(at(root, "store"), name)).mode & 0o777).toBe(0o600);
      expect(readFileSync(at(at(root, "store"), name), "latin1")).not.toMatch(/INTO events/);
    }
    expect(rebuilt(at(root, "store")).damage.lost.transactions).toBe(0);
  });

  test("have the changes of a writing thread, and the copy is made in a thread during writes", async () => {
    const directory = at(root, "store");
    fs.mkdirSync(directory);
    const store = open(directory);
    await store.sessions.put(storedSession("s1"));
    while (!store.database.isThreaded) await pushOne(store);
    const copied = store.copier.copy();
    let isCopied = false;
    void copied.then(() => {
      isCopied = true;
    });
    while (!isCopied) await pushOne(store);
    expect(store.info()).not.toHaveProperty("copyFailure");
    await pushOne(store);
    expect(existsSync(at(directory, "store.changes.former"))).toBe(false);
    const rows = rowsIn(store.database);
    store.close();
    const copy = [...recordsIn(at(directory, "store.db.copy"))];
    expect(copy.at(-1)?.number).toBeGreaterThan(1);
    const after = rebuilt(directory);
    expect(after.damage.lost.transactions).toBe(0);
    expect(after.rows).toEqual(rows);
  });

  test("restore a store that was killed at any step of a copy, while it was written", async () => {
    const store = await copiedStore();
    const directory = at(root, "store");
    const states: { readonly directory: string; readonly rows: readonly string[]; readonly step: string }[] = [];
    let isTaking = false;
    const names = ["openSync", "writeSync", "fsyncSync", "closeSync", "renameSync", "rmSync"] as const;
    const originals = names.map((name) => [name, fs[name]] as const);
    const take = (step: string): void => {
      if (isTaking) return;
      isTaking = true;
      void pushOne(store);
      store.database.flush();
      states.push({ directory: snapshotOf(directory), rows: rowsIn(store.database), step });
      isTaking = false;
    };
    for (const [name, original] of originals) {
      const step = (...parameters: unknown[]): unknown => {
        take(`before ${name} ${String(parameters[0])}`);
        const result = Reflect.apply(original, fs, parameters);
        take(`after ${name} ${String(parameters[0])}`);
        return result;
      };
      Object.assign(fs, { [name]: step });
    }
    syncBuiltinESMExports();
    try {
      await store.copier.copy();
    } finally {
      Object.assign(fs, Object.fromEntries(originals));
      syncBuiltinESMExports();
    }
    const rows = rowsIn(store.database);
    expect(store.copier.failure).toBeUndefined();
    store.close();
    const steps = states.map(({ step }) => step.replace(directory, ""));
    expect(states.length).toBeGreaterThan(20);
    expect(steps.findLastIndex((step) => step.startsWith("after writeSync"))).toBeLessThan(
      steps.findIndex((step) => step.startsWith("after fsyncSync")),
    );
    expect(steps.findIndex((step) => step.startsWith("after fsyncSync"))).toBeLessThan(
      steps.indexOf("before renameSync /store.db.copy.new"),
    );
    for (const state of states) {
      const after = rebuilt(state.directory);
      expect(after.rows, state.step).toEqual(state.rows);
      expect(after.damage.lost.transactions, state.step).toBe(0);
    }
    // A daemon that finds what the killed one left makes a complete copy.
    const next = open(directory, { copies: inThisThread });
    await next.copier.copy();
    next.close();
    expect(readdirSync(directory).sort()).not.toContain("store.changes.former");
    expect(rebuilt(directory).rows).toEqual(rows);
  });

  test("with any flipped bit restore everything, or say that something is lost", async () => {
    const store = await copiedStore();
    const noted = store.database.commits;
    const rows = rowsIn(store.database);
    store.close();
    const directory = at(root, "store");
    let state = 20_240_101;
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    let exact = 0;
    for (let round = 0; round < 200; round += 1) {
      const file = at(directory, round % 2 === 0 ? "store.changes" : "store.db.copy");
      const bytes = readFileSync(file);
      const place = random(bytes.length);
      const flipped = Buffer.from(bytes);
      flipped[place] = (bytes[place] ?? 0) ^ (1 << random(8));
      writeFileSync(file, flipped);
      const database = new DatabaseSync(":memory:");
      const { missing, damagedLines } = replay(database, at(directory, "store.db"), noted);
      migrate(database);
      const isExact = JSON.stringify(rowsIn(database)) === JSON.stringify(rows);
      if (isExact) exact += 1;
      else expect(missing + damagedLines, `${file} at ${place}`).toBeGreaterThan(0);
      database.close();
      writeFileSync(file, bytes);
    }
    expect(exact).toBeLessThan(200);
  });
});

describe("a damaged store", () => {
  test("with a damaged line in its log keeps all other changes, and counts the lost one", async () => {
    const store = await copiedStore();
    const rows = rowsIn(store.database);
    store.close();
    const file = at(at(root, "store"), "store.changes");
    writeFileSync(file, readFileSync(file, "utf8").replace("later", "Later"));
    const after = rebuilt(at(root, "store"));
    expect(after.rows).toEqual(rows.filter((row) => !row.includes('"later-')));
    expect(after.damage).toMatchObject({
      why: expect.stringMatching(/1 transactions are lost.*1 damaged/),
      lost: { transactions: 1 },
    });
  });

  test("does not bring back a session whose closing is lost", async () => {
    const store = await copiedStore();
    await store.sessions.delete("s2");
    store.close();
    const directory = at(root, "store");
    // The daemon in between has rewritten the list.
    open(directory).close();
    for (const name of ["store.db", "store.changes"]) rmSync(at(directory, name));
    const next = open(directory, { findSession: () => ({ file: "/f", cwd: "/c", createdAt: 7 }) });
    expect(next.info().damaged[0]?.lost.transactions).toBeGreaterThan(0);
    expect(
      next.sessions
        .all()
        .map(({ sessionId }) => sessionId)
        .sort(),
    ).toEqual(["s1", "s3", "s4"]);
    next.close();
  });

  test("with a torn end of its log keeps all lines before it", async () => {
    const store = await copiedStore();
    store.close();
    const file = at(at(root, "store"), "store.changes");
    truncateSync(file, statSync(file).size - 5);
    expect(rebuilt(at(root, "store")).damage.lost.transactions).toBe(1);
  });

  test("without its copy has the changes of its log, and the list's sessions; counts the others", async () => {
    const store = await copiedStore();
    const { commits } = store.database;
    store.close();
    rmSync(at(at(root, "store"), "store.db.copy"));
    const logged = [...recordsIn(at(at(root, "store"), "store.changes"))].length;
    const { rows, damage } = rebuilt(at(root, "store"));
    expect(rows.filter((row) => row.includes('"later-'))).toHaveLength(1);
    expect(damage.kept).toMatchObject({ sessions: 1, sessionsFromList: 3, deliveries: 1 });
    expect(damage.lost.transactions).toBe(commits - logged);
  });

  test("with a damaged copy has its other lines and its log, and says so", async () => {
    const store = await copiedStore();
    store.close();
    const file = at(at(root, "store"), "store.db.copy");
    writeFileSync(file, readFileSync(file, "utf8").replace("prompt of s2", "prompt of s3"));
    const { rows, damage } = rebuilt(at(root, "store"));
    expect(damage.why).toMatch(/1 damaged or missing lines/);
    expect(rows.filter((row) => row.includes('"prompt_id"'))).toHaveLength(0);
    expect(damage.kept).toMatchObject({ sessions: 4, deliveries: 12 });
  });

  test("with a truncated copy says so", async () => {
    const store = await copiedStore();
    store.close();
    const file = at(at(root, "store"), "store.db.copy");
    const text = readFileSync(file, "utf8");
    writeFileSync(file, text.slice(0, text.lastIndexOf("\n")));
    expect(rebuilt(at(root, "store")).damage.why).toMatch(/1 damaged or missing lines/);
  });

  test("with an unreadable log is left alone, with a sentence that says what to do", async () => {
    const store = await copiedStore();
    store.close();
    const directory = at(root, "store");
    rmSync(at(directory, "store.changes"));
    fs.mkdirSync(at(directory, "store.changes"));
    rmSync(at(directory, "store.db"));
    expect(() => open(directory)).toThrow(/store\.changes cannot be read: .*Make it readable/);
    fs.rmdirSync(at(directory, "store.changes"));
    expect(rebuilt(directory).damage.lost.transactions).toBeGreaterThan(0);
  });

  test("of a version without a log keeps the sessions of the list until its first copy", async () => {
    const store = await copiedStore();
    const rows = rowsIn(store.database);
    store.close();
    const directory = at(root, "store");
    for (const file of Object.values(logFiles(at(directory, "store.db")))) rmSync(file, { force: true });
    const early = snapshotOf(directory);
    expect(rebuilt(early).damage).toMatchObject({ kept: { sessionsFromList: 4, deliveries: 0 } });
    const next = open(directory, { copies: inThisThread });
    await next.copier.copy();
    next.close();
    expect(rebuilt(directory).rows).toEqual(rows);
  });

  test("is not rebuilt from the log of another history, after a version without a log has written it", async () => {
    const store = await copiedStore();
    store.close();
    const directory = at(root, "store");
    // That version writes the number of its newest commit only once.
    const mark = readFileSync(at(directory, "store.mark"), "utf8");
    const newest = Number(mark.slice(0, 19));
    writeFileSync(at(directory, "store.mark"), `${String(newest + 1).padStart(19, "0")}${mark.slice(19)}`);
    const database = new DatabaseSync(at(directory, "store.db"));
    database.exec("UPDATE commits SET newest = newest + 1");
    database.close();
    open(directory).close();
    expect(existsSync(at(directory, "store.db.copy"))).toBe(false);
    expect(newestLogged(at(directory, "store.db"))).toBeGreaterThan(newest);
    const { damage } = rebuilt(directory);
    expect(damage.kept).toMatchObject({ sessions: 0, sessionsFromList: 4 });
    expect(damage.lost.transactions).toBe(newest + 1);
  });

  test("has its newest transactions if only the log has them", async () => {
    const directory = at(root, "store");
    const store = await copiedStore(directory);
    const older = copyStore(directory, at(root, "older"));
    await pushOne(store);
    const rows = rowsIn(store.database);
    store.close();
    // The database and the mark of the killed daemon are older than its log.
    cpSync(at(directory, "store.changes"), at(older, "store.changes"));
    const next = open(older);
    expect(next.info().damaged).toMatchObject([{ why: expect.stringMatching(/lacks the newest 1 /) }]);
    expect(rowsIn(next.database)).toEqual(rows);
    next.close();
  });

  test("that lacks only unsynced transactions loses no synced one with a damaged line of its log", async () => {
    const directory = at(root, "store");
    const store = await copiedStore(directory);
    await pushOne(store);
    const synced = `later-${pushes}`;
    const atPowerFailure = copyStore(directory, at(root, "atPowerFailure"));
    await new DeliveryStore(store.database).update(storedDelivery(synced, "s1", { state: "held" }), false);
    const rows = rowsIn(store.database);
    store.close();
    // The newest line is on the disk, before the WAL's frames of its commit, and a block with an earlier line is not.
    const log = readFileSync(at(directory, "store.changes"), "utf8");
    writeFileSync(at(atPowerFailure, "store.changes"), log.replace(synced, "\0".repeat(synced.length)));
    const next = open(atPowerFailure);
    expect(rowsIn(next.database)).toEqual(rows);
    expect(next.info().damaged).toMatchObject([{ lost: { transactions: 0 } }]);
    next.close();
  });

  test("is not called incomplete for a damaged line that the copy makes needless", async () => {
    const store = await copiedStore();
    const rows = rowsIn(store.database);
    const directory = at(root, "store");
    store.close();
    const file = at(directory, "store.changes");
    const [, ...lines] = readFileSync(file, "utf8").split("\n");
    writeCopy(at(directory, "store.db"));
    writeFileSync(file, ["", lines[0]?.replace("s4", "s5"), ...lines.slice(1)].join("\n"));
    const { rows: after, damage } = rebuilt(directory);
    expect(after).toEqual(rows);
    expect(damage.why).not.toMatch(/damaged or missing lines/);
  });

  test("reads lines of any length", () => {
    const file = at(root, "store.changes");
    const appender = new LogAppender(new ChangeLog(at(root, "store.db"), 8, 100_000_000).state);
    const lengths = [1, 3_000_000, 1_048_560, 2, 1_048_576, 900_000, 7_000_000];
    for (const [index, length] of lengths.entries())
      appender.append(index + 1, [{ sql: "?", parameters: ["é".repeat(length)] }]);
    const texts = [...recordsIn(file)].map((record) => String(record?.changes[0]?.[1]));
    expect(texts.map((text) => text.length)).toEqual(lengths);
    expect(new Set(texts.join(""))).toEqual(new Set(["é"]));
    expect([...recordsIn(file, 15_000_000)].at(-1)?.number).toBe(lengths.length);
  });

  test("is rebuilt from changes of two schema versions", () => {
    const path = at(root, "store.db");
    // This version's deliveries had no numbers.
    const older = new LogAppender(new ChangeLog(path, 8, 1_000_000).state);
    const columns = "delivery_id, session_id, settled, push, record, created_at";
    older.append(1, [
      { sql: `INSERT INTO deliveries (${columns}) VALUES (?, 's', 0, '', '{}', 1)`, parameters: ["d"] },
    ]);
    const newer = new LogAppender(new ChangeLog(path, schemaVersion, 1_000_000).state);
    newer.append(2, [{ sql: "INSERT INTO last_answers VALUES ('s', '{}', 0)", parameters: [] }]);
    const database = new DatabaseSync(":memory:");
    expect(replay(database, path, 2)).toEqual({ newest: 2, missing: 0, damagedLines: 0 });
    expect(rowsIn(database)).toHaveLength(2);
    expect(database.prepare("SELECT number FROM deliveries").all()).toEqual([{ number: 1 }]);
    database.close();
  });
});

test("a log of a newer version is refused, not replayed without what this version does not know", () => {
  const path = at(root, "store.db");
  const log = new ChangeLog(path, schemaVersion + 1, 1_000_000);
  new LogAppender(log.state).append(1, [{ sql: "INSERT INTO a_newer_table VALUES (1)", parameters: [] }]);
  log.close();
  const database = new DatabaseSync(":memory:");
  expect(() => replay(database, path, 1)).toThrow(NewerStoreError);
  database.close();
});

describe("the log has every commit", () => {
  const insert = "INSERT INTO runs (run_id, session_id, record) VALUES (?, 's', '{}')";
  const numbers = () => [...recordsIn(at(root, "store.changes"))].map((record) => record?.number);

  test("of a replaced connection", async () => {
    const connection = failingConnection();
    const log = new ChangeLog(at(root, "store.db"), schemaVersion, 1_000_000);
    const recovered = deferred<void>();
    const { connect } = connection;
    const database = new Database(at(root, "store.db"), () => {}, { log, connect, onRecovered: recovered.resolve });
    const run = database.prepare(insert);
    await database.write(run, "a");
    connection.fail("COMMIT");
    await expect(database.write(run, "b")).rejects.toThrow();
    await recovered.promise;
    await database.write(run, "c");
    expect(numbers()).toEqual([1, 2, 3]);
    expect(database.commits).toBe(3);
    database.close();
    log.close();
  });

  test("of a writing thread that died after it", async () => {
    const path = at(root, "store.db");
    const log = new ChangeLog(path, schemaVersion, 1_000_000);
    const startThread = ({ onReady, onEnd }: ThreadCallbacks): WriterThread => {
      const writer = new Writer({ path, connection: connect(path), connect });
      onReady();
      const request = (request: WriterRequest): void => {
        writer.take(request);
        writer.close();
        onEnd(new Error("It died."));
      };
      return { request, finish: () => true, close: () => {} };
    };
    const database = new Database(path, () => {}, { log, startThread, maxLocalMs: 0 });
    const run = database.prepare(insert);
    for (const id of ["here", "there", "here again"]) await database.write(run, id);
    expect(numbers()).toEqual([1, 2, 3]);
    expect(readFileSync(at(root, "store.changes"), "utf8")).toContain('"there"');
    database.close();
    log.close();
  });
});

describe("a log that cannot be written", () => {
  const change = { sql: "INSERT INTO prompts VALUES (?)", parameters: ["x".repeat(2_000)] };

  test("leaves the commit valid, is reported once, and a copy completes it", async () => {
    const directory = at(root, "store");
    fs.mkdirSync(directory);
    const path = at(directory, "store.db");
    const log = new ChangeLog(path, schemaVersion, 1_000_000);
    const mark = CommitMark.open(at(directory, "store.mark"));
    const failures: unknown[] = [];
    const database = new Database(path, (error) => failures.push(error), { log, mark });
    const copier = new Copier({
      ...{ ...inThisThread, path, log, commits: () => database.commits, isHeld: () => true },
      onFailure: (error) => failures.push(error),
    });
    const deliveries = new DeliveryStore(database);
    const push = (id: string) => deliveries.add({ push: pushOf(id, "x"), delivery: storedDelivery(id, "s1") });
    await push("logged");
    const full = openSync("/dev/full", "a");
    const [descriptor = 0] = log.state;
    log.state[0] = full;
    await push("first");
    await push("second");
    expect(failures).toMatchObject([{ message: expect.stringMatching(/cannot be written: ENOSPC.*next copy/) }]);
    expect(database.health.state).toBe("open");
    expect(copier.failure).toMatch(/^2 transactions/);
    log.state[0] = descriptor;
    closeSync(full);
    const early = snapshotOf(directory);
    await push("third");
    await copier.copy();
    expect(copier.failure).toBeUndefined();
    await push("fourth");
    const rows = rowsIn(database);
    copier.close();
    database.close();
    log.close();
    mark.close();
    expect(rebuilt(early).damage.lost.transactions).toBe(2);
    const after = rebuilt(directory);
    expect(after.rows).toEqual(rows);
    expect(after.damage.lost.transactions).toBe(0);
  });

  test.each([1, 2])(
    "is shortened by a later copy if its renaming fails at step %d, and leaves no open file",
    (step) => {
      const log = new ChangeLog(at(root, "store.db"), schemaVersion, 1_000_000);
      const appender = new LogAppender(log.state);
      appender.append(1, [change]);
      const open = vi.spyOn(fs, "openSync");
      const close = vi.spyOn(fs, "closeSync");
      const { renameSync } = fs;
      let calls = 0;
      fs.renameSync = (from, to) => {
        calls += 1;
        if (calls === step) throw new Error("The disk failed.");
        renameSync(from, to);
      };
      syncBuiltinESMExports();
      try {
        expect(() => log.turn()).toThrow("The disk failed.");
        expect(close).toHaveBeenCalledTimes(open.mock.calls.length);
      } finally {
        fs.renameSync = renameSync;
        vi.restoreAllMocks();
        syncBuiltinESMExports();
      }
      appender.append(2, [change]);
      const done = log.turn();
      appender.append(3, [change]);
      done();
      expect([...recordsIn(at(root, "store.changes"))].map((record) => record?.number)).toEqual([3]);
      expect(existsSync(at(root, "store.changes.former"))).toBe(false);
      expect(log.bytes).toBe(statSync(at(root, "store.changes")).size);
      log.close();
    },
  );

  test("refuses a change that is too long for a text", () => {
    const log = new ChangeLog(at(root, "store.db"), schemaVersion, 1_000_000);
    const appender = new LogAppender(log.state);
    const tooLong = { sql: "INSERT INTO prompts VALUES (?)", parameters: ["\u0001".repeat(100_000_000)] };
    expect(() => appender.append(1, [tooLong])).toThrow(/log of the store's changes cannot be written: Invalid string/);
    appender.append(2, [change]);
    expect([...recordsIn(at(root, "store.changes"))].map((record) => record?.number)).toEqual([2]);
    expect(log.holes).toBe(1);
    log.close();
  });

  test("stops at its limit, and reports that once", () => {
    const log = new ChangeLog(at(root, "store.db"), schemaVersion, 10_000);
    const appender = new LogAppender(log.state);
    let failures = 0;
    for (let number = 1; number <= 20; number += 1) {
      try {
        appender.append(number, [change]);
      } catch (error) {
        expect(String(error)).toMatch(/10000 bytes, its limit/);
        failures += 1;
      }
    }
    expect(failures).toBe(1);
    expect(statSync(at(root, "store.changes")).size).toBeLessThan(13_000);
    expect(log.holes).toBe(15);
    log.close();
  });

  test("continues after a line that was written in part", () => {
    // The limit of the file's size ends one of these lines.
    const module = JSON.stringify(join(import.meta.dirname, "../../../server/store/change-log.ts"));
    const program = `
      import { ChangeLog, LogAppender } from ${module};
      process.on("SIGXFSZ", () => {});
      const appender = new LogAppender(new ChangeLog(${JSON.stringify(at(root, "store.db"))}, 1, 1e9).state);
      const change = { sql: "S", parameters: ["x".repeat(3000)] };
      for (let number = 1; number < 9; number += 1) {
        try { appender.append(number, [change]) } catch (error) { console.log(error.message) }
      }`;
    const shell = 'ulimit -f 16; exec "$0" --input-type=module -e "$1"';
    const output = execFileSync("sh", ["-c", shell, process.execPath, program], { encoding: "utf8" });
    expect(output).toMatch(/^The log .* cannot be written: Of \d+ bytes \d+ were written\..*\n$/);
    const log = new ChangeLog(at(root, "store.db"), 1, 1e9);
    new LogAppender(log.state).append(9, []);
    log.close();
    const records = [...recordsIn(at(root, "store.changes"))];
    expect(records.filter((record) => record === undefined)).toHaveLength(1);
    expect(records.at(-1)?.number).toBe(9);
  });
});

describe("a copy", () => {
  test("is not made of damaged rows: the former copy and the log stay", async () => {
    const store = await copiedStore();
    const directory = at(root, "store");
    const copy = readFileSync(at(directory, "store.db.copy"));
    await store.database.write(store.database.prepare("UPDATE prompts SET text = 'other' WHERE prompt_id = 'p-s1'"));
    await store.copier.copy();
    expect(store.copier.failure).toMatch(/A row of the table prompts is damaged/);
    expect(readFileSync(at(directory, "store.db.copy"))).toEqual(copy);
    expect(statSync(at(directory, "store.changes.former")).size).toBeGreaterThan(0);
    const rows = rowsIn(store.database);
    // A further attempt loses nothing of the former log.
    await store.copier.copy();
    await pushOne(store);
    expect(existsSync(at(directory, "store.db.copy.new"))).toBe(false);
    store.close();
    expect(rebuilt(directory).rows.filter((row) => !row.includes(`later-${pushes}"`))).toEqual(rows);
  });

  test("leaves disk space for the writes of others, and the former copy stays", async () => {
    const store = await copiedStore();
    const directory = at(root, "store");
    const copy = readFileSync(at(directory, "store.db.copy"));
    const { statfsSync } = fs;
    fs.statfsSync = ((path: string) => ({ ...statfsSync(path), bavail: 1 })) as typeof statfsSync;
    syncBuiltinESMExports();
    try {
      await store.copier.copy();
    } finally {
      fs.statfsSync = statfsSync;
      syncBuiltinESMExports();
    }
    expect(store.copier.failure).toMatch(/Too little disk space/);
    expect(readFileSync(at(directory, "store.db.copy"))).toEqual(copy);
    expect(existsSync(at(directory, "store.db.copy.new"))).toBe(false);
    await store.copier.copy();
    expect(store.copier.failure).toBeUndefined();
    store.close();
  });

  test(
    "that fails is repeated, and due ones are made without a request",
    async () => {
      vi.useFakeTimers({ toFake: ["setInterval", "performance"] });
      try {
        const directory = at(root, "store");
        fs.mkdirSync(directory);
        let made = 0;
        let isFailing = false;
        const write = async (path: string): Promise<number> => {
          made += 1;
          if (isFailing) throw new Error("The disk is full.");
          return writeCopy(path);
        };
        const store = open(directory, { copies: { write, limits: { ...limits.storeCopies, copyAtLogBytes: 50_000 } } });
        const pass = (ms: number) => vi.advanceTimersByTimeAsync(ms);
        await pushOne(store);
        await pass(50_000);
        expect(made).toBe(0);
        await pass(15_000);
        expect(made).toBe(1);
        // Nothing has changed.
        await pass(2 * 60 * 60_000);
        expect(made).toBe(1);
        await pushOne(store);
        await pass(10_000);
        expect(made).toBe(2);
        await pushOne(store);
        await pass(10_000);
        expect(made).toBe(2);
        // The log is long.
        const delivery = storedDelivery("long", "s1");
        await new DeliveryStore(store.database).add({ push: pushOf("long", "x".repeat(60_000)), delivery });
        isFailing = true;
        await pass(5_000);
        expect(made).toBe(3);
        expect(store.info().copyFailure).toMatch(/The disk is full/);
        await pass(30_000);
        expect(made).toBe(3);
        isFailing = false;
        await pass(35_000);
        expect(made).toBe(4);
        expect(store.info()).not.toHaveProperty("copyFailure");
        store.close();
      } finally {
        vi.useRealTimers();
      }
    },
    patience.timeout,
  );
});
