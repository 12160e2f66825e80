import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Dialog } from "../../../protocol/dialog.ts";
import { Database } from "../../../server/store/database.ts";
import { DeliveryStore } from "../../../server/store/deliveries.ts";
import { DialogStore } from "../../../server/store/dialogs.ts";
import { EventStore } from "../../../server/store/events.ts";
import { PromptStore } from "../../../server/store/prompts.ts";
import { SessionList } from "../../../server/store/session-list.ts";
import { SessionStore } from "../../../server/store/sessions.ts";
import { failingConnection } from "../../helpers/failing-connection.ts";
import { copyStore, open, pushOf, storedDelivery, storedPrompt, storedSession } from "../../helpers/stored.ts";

let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "session-list-"));
});

afterEach(() => {
  rmSync(directory, { recursive: true });
});

const unexpected = (error: unknown): void => {
  throw error;
};
const idsIn = (place: string): readonly string[] => {
  const store = open(place);
  const ids = store.sessions.all().map(({ sessionId }) => sessionId);
  store.close();
  return ids;
};

test("a session that clients know and the store could not write exists after its daemon was killed", async () => {
  const connection = failingConnection();
  const database = new Database(join(directory, "store.db"), () => {}, { connect: connection.connect });
  const list = new SessionList(join(directory, "sessions.jsonl"), unexpected);
  const sessions = new SessionStore(database, list);
  await sessions.put(storedSession("before"));
  connection.fail("open", Number.MAX_SAFE_INTEGER);
  connection.fail("BEGIN", Number.MAX_SAFE_INTEGER);
  await expect(sessions.put(storedSession("announced"))).rejects.toMatchObject({ kind: "store_failed" });
  await expect(sessions.put(storedSession("closed again"))).rejects.toMatchObject({ kind: "store_failed" });
  await expect(sessions.delete("closed again")).rejects.toMatchObject({ kind: "store_failed" });
  const killed = copyStore(directory, join(directory, "killed"));
  connection.fail("open", 0);
  connection.fail("BEGIN", 0);
  database.close();
  list.close();

  const before = Date.now();
  const store = open(killed);
  const [known, announced, ...others] = store.sessions.all();
  expect([known?.sessionId, announced?.sessionId, others]).toEqual(["before", "announced", []]);
  // Its used numbers are unknown; all from now on are above them.
  expect(known?.reservedSeq).toBe(5);
  expect(announced?.reservedSeq).toBeGreaterThanOrEqual(before * 1_000);
  store.close();
  expect(idsIn(killed)).toEqual(["before", "announced"]);
  // It has its row by now, whatever happens to the list.
  rmSync(join(killed, "sessions.jsonl"));
  expect(idsIn(killed)).toEqual(["before", "announced"]);
});

test("a session that was closed does not come back if its end could not be written to the list", async () => {
  const store = open(directory);
  await store.sessions.put(storedSession("one"));
  await store.sessions.put(storedSession("two"));
  await store.sessions.delete("one");
  store.close();
  const file = join(directory, "sessions.jsonl");
  const lines = readFileSync(file, "utf8").split("\n");
  writeFileSync(file, lines.filter((line) => !line.includes('"closed"')).join("\n"));
  expect(idsIn(directory)).toEqual(["two"]);
});

/** A store that knows two sessions with their dependent rows, and fails from then on. */
async function failingStore() {
  const connection = failingConnection();
  const database = new Database(join(directory, "store.db"), () => {}, { connect: connection.connect });
  const list = new SessionList(join(directory, "sessions.jsonl"), unexpected);
  const sessions = new SessionStore(database, list);
  const prompts = new PromptStore(database);
  const events = new EventStore(database, { maxSessionBytes: 1 << 20, maxTotalBytes: 1 << 20 });
  const dialogs = new DialogStore(database);
  for (const id of ["closed", "other"]) {
    await sessions.put(storedSession(id, { logEpoch: `first-${id}` }));
    await prompts.add(storedPrompt(`p-${id}`, id));
    await prompts.runs.put(id, { runId: `r-${id}`, startedAt: 1, promptIds: [] });
    await events.put(id, 1, 1, [Buffer.from("{}")]);
    const dialog = { dialogId: `q-${id}`, sessionId: id, state: "open", openedAt: 1, title: "", requestId: "" };
    await dialogs.put(dialog as unknown as Dialog);
  }
  connection.fail("open", Number.MAX_SAFE_INTEGER);
  connection.fail("BEGIN", Number.MAX_SAFE_INTEGER);
  await expect(sessions.delete("closed")).rejects.toMatchObject({ kind: "store_failed" });
  /** The files of a daemon that is killed now. */
  const kill = (): string => {
    const killed = copyStore(directory, join(directory, "killed"));
    connection.fail("open", 0);
    connection.fail("BEGIN", 0);
    database.close();
    list.close();
    return killed;
  };
  return { sessions, list, kill };
}

/** The dependent rows of a session that exist. */
function hangingOn(place: string, sessionId: string): readonly unknown[] {
  const store = open(place);
  const { database } = store;
  const prompts = new PromptStore(database);
  const found = [
    ...prompts.open(sessionId).map(({ promptId }) => promptId),
    ...prompts.runs.of(sessionId).map(({ runId }) => runId),
    ...new DialogStore(database).open().flatMap(({ dialogId, sessionId: of }) => (of === sessionId ? dialogId : [])),
    new EventStore(database, { maxSessionBytes: 1 << 20, maxTotalBytes: 1 << 20 }).newest(sessionId),
  ];
  store.close();
  return found;
}

test("a session that was closed while the store failed is gone after its daemon was killed, with its dependent rows", async () => {
  const { kill } = await failingStore();
  const killed = kill();
  const store = open(killed);
  expect(store.sessions.all()).toMatchObject([{ sessionId: "other" }]);
  expect([store.sessions.isOrphaned("closed"), store.sessions.isOrphaned("other")]).toEqual([true, false]);
  store.close();
  expect(hangingOn(killed, "closed")).toEqual([undefined]);
  expect(hangingOn(killed, "other")).toEqual(["p-other", "r-other", "q-other", 1]);
  // Its row is gone, whatever happens to the list, which no longer names it.
  expect(readFileSync(join(killed, "sessions.jsonl"), "utf8")).not.toContain('"closed"');
  rmSync(join(killed, "sessions.jsonl"));
  expect(idsIn(killed)).toEqual(["other"]);
});

test("one that was opened again while the store failed is the new one, and has nothing of the former", async () => {
  const { sessions, kill } = await failingStore();
  const again = storedSession("closed", { logEpoch: "second", reservedSeq: 0 });
  await expect(sessions.put(again)).rejects.toMatchObject({ kind: "store_failed" });
  const killed = kill();
  const store = open(killed);
  const found = store.sessions.all().find(({ sessionId }) => sessionId === "closed");
  expect([found?.logEpoch, store.sessions.isOrphaned("closed")]).toEqual(["second", true]);
  store.close();
  expect(hangingOn(killed, "closed")).toEqual([undefined]);
  // From the second start on it is a session like any other.
  const later = open(killed);
  expect([later.sessions.isOrphaned("closed"), later.sessions.all().length]).toEqual([false, 2]);
  later.close();
});

test("one that was closed, opened and stored again keeps its dependent rows", async () => {
  const store = open(directory);
  await store.sessions.put(storedSession("one", { logEpoch: "first" }));
  await store.sessions.delete("one");
  await store.sessions.put(storedSession("one", { logEpoch: "second" }));
  await new PromptStore(store.database).add(storedPrompt("p-one", "one"));
  store.close();
  expect(hangingOn(directory, "one")).toEqual(["p-one", undefined]);
  const again = open(directory);
  expect([again.sessions.all().length, again.sessions.isOrphaned("one")]).toEqual([1, false]);
  again.close();
});

const full = 13;

test("a session that is opened again stores nothing before its former life is deleted, however often that fails", async () => {
  const connection = failingConnection();
  const back = Promise.withResolvers<void>();
  const database = new Database(join(directory, "store.db"), () => {}, {
    connect: connection.connect,
    onRecovered: back.resolve,
  });
  const list = new SessionList(join(directory, "sessions.jsonl"), unexpected);
  const sessions = new SessionStore(database, list);
  const prompts = new PromptStore(database);
  const deliveries = new DeliveryStore(database);
  await sessions.put(storedSession("one", { logEpoch: "first" }));
  const delivery = storedDelivery("d", "one");
  await deliveries.add({ push: pushOf("d", "x"), delivery });
  // Closed while the disk is full. Then there is space for small writes, but not for all pending ones.
  connection.fail("COMMIT", 1, full);
  connection.fail("DELETE FROM prompts", Number.MAX_SAFE_INTEGER, full);
  const closing = [
    deliveries.update({ ...delivery, state: "failed", settledAt: 2 }, true),
    sessions.delete("one"),
    prompts.deleteOf("one"),
  ];
  await Promise.allSettled(closing);
  const again = storedSession("one", { logEpoch: "second" });
  await expect(sessions.put(again)).rejects.toMatchObject({ kind: "store_failed" });
  await expect(prompts.add(storedPrompt("refused", "one"))).rejects.toMatchObject({ kind: "store_failed" });
  const killed = copyStore(directory, join(directory, "killed"));

  connection.fail("DELETE FROM prompts", 0);
  await back.promise;
  await prompts.add(storedPrompt("p", "one"));
  expect([prompts.open("one").map(({ promptId }) => promptId), deliveries.open()]).toEqual([["p"], []]);
  expect(sessions.all()).toEqual([again]);
  database.close();
  list.close();

  const store = open(killed);
  expect(store.sessions.all()).toMatchObject([{ sessionId: "one", logEpoch: "second" }]);
  // Its push is still open there, and belongs to the former life.
  expect([store.sessions.isOrphaned("one"), new DeliveryStore(store.database).open().length]).toEqual([true, 1]);
  store.close();
});

test("a session that was closed does not come back if the store fails as the next daemon starts", async () => {
  const store = open(directory);
  for (const id of ["closed", "other"]) await store.sessions.put(storedSession(id, { logEpoch: "e" }));
  store.close();
  const file = join(directory, "sessions.jsonl");
  writeFileSync(file, `${JSON.stringify({ sessionId: "closed", closed: true, logEpoch: "e" })}\n`, { flag: "a" });
  const connection = failingConnection();
  const back = Promise.withResolvers<void>();
  const { connect } = connection;
  const database = new Database(join(directory, "store.db"), () => {}, { connect, onRecovered: back.resolve });
  connection.fail("COMMIT", 1, full);
  const list = new SessionList(file, unexpected);
  const sessions = new SessionStore(database, list, SessionList.read(file));
  const ids = () => sessions.all().map(({ sessionId }) => sessionId);
  expect([database.health.state, ids()]).toEqual(["failing", ["other"]]);
  await back.promise;
  expect(ids()).toEqual(["other"]);
  database.close();
  list.close();
  expect(idsIn(directory)).toEqual(["other"]);
});

test("rows that belong to no existing session are removed", async () => {
  const store = open(directory);
  await store.sessions.put(storedSession("one"));
  const prompts = new PromptStore(store.database);
  await prompts.add(storedPrompt("p-one", "one"));
  await prompts.add(storedPrompt("p-none", "none"));
  store.close();
  expect([hangingOn(directory, "none"), hangingOn(directory, "one")]).toEqual([[undefined], ["p-one", undefined]]);
});

describe("the list as it grows", () => {
  const file = (): string => join(directory, "sessions.jsonl");
  const linesIn = (): string[] => readFileSync(file(), "utf8").split("\n").slice(0, -1);
  const rename = (list: SessionList, from: number, times: number): void => {
    for (let i = from; i < from + times; i += 1) list.put(storedSession("busy", { name: `name ${i}` }));
  };

  test("is rewritten when it is long, with the changes that the database lacks and those that it may still have", () => {
    const list = new SessionList(file(), unexpected);
    const old = storedSession("old");
    list.begin([storedSession("busy"), storedSession("closed", { logEpoch: "e" }), old]);
    list.delete("closed");
    list.put(storedSession("ahead"));
    writeFileSync(`${file()}.new`, "what a daemon left that was killed while it wrote");
    rename(list, 0, 10_100);
    expect(linesIn().length).toBeLessThan(200);
    expect([existsSync(`${file()}.new`), statSync(file()).mode & 0o777]).toEqual([false, 0o600]);
    // Later lines go to the new file.
    rename(list, 10_100, 1);
    const { sessions, ahead, closed } = SessionList.read(file());
    expect([...sessions.keys()].sort()).toEqual(["ahead", "busy", "old"]);
    expect([sessions.get("busy")?.name, sessions.get("old")]).toEqual(["name 10100", old]);
    expect(ahead.map(({ sessionId }) => sessionId)).toEqual(["ahead"]);
    expect(closed).toEqual(new Map([["closed", new Set(["e"])]]));
    list.close();
  });

  test("that cannot be rewritten continues unchanged, without duplicates or losses", () => {
    const said: unknown[] = [];
    const list = new SessionList(file(), (error) => said.push(error));
    list.begin([storedSession("busy")]);
    // At the path where the new file would be created.
    mkdirSync(`${file()}.new`);
    rename(list, 0, 10_100);
    // With its first line, and that of the unchanged session.
    expect([said.length, linesIn().length]).toEqual([1, 10_102]);
    expect(SessionList.read(file()).sessions.get("busy")?.name).toBe("name 10099");
    rmdirSync(`${file()}.new`);
    rename(list, 20_000, 10_000);
    expect(linesIn().length).toBeLessThan(200);
    expect(SessionList.read(file()).sessions.get("busy")?.name).toBe("name 29999");
    list.close();
  });

  test("is rewritten at the next line if the rewrite could not start", () => {
    const said: unknown[] = [];
    const list = new SessionList(file(), (error) => said.push(error));
    mkdirSync(`${file()}.new`);
    list.begin([storedSession("one")]);
    list.put(storedSession("two"));
    expect([said.length, existsSync(file())]).toEqual([2, false]);
    rmdirSync(`${file()}.new`);
    list.delete("one");
    const { sessions, closed } = SessionList.read(file());
    expect([[...sessions.keys()], [...closed.keys()]]).toEqual([["two"], ["one"]]);
    list.close();
  });
});
