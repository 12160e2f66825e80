import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Database } from "../../../server/store/database.ts";
import { SessionList } from "../../../server/store/session-list.ts";
import { SessionStore } from "../../../server/store/sessions.ts";
import { failingConnection } from "../../helpers/failing-connection.ts";
import { copyStore, open, storedSession } from "../../helpers/stored.ts";

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

test("a session that clients know and the store could not take is there after a daemon that was killed", async () => {
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
  // What numbers it had given nobody knows; all from now on are above them.
  expect(known?.reservedSeq).toBe(5);
  expect(announced?.reservedSeq).toBeGreaterThanOrEqual(before * 1_000);
  store.close();
  expect(idsIn(killed)).toEqual(["before", "announced"]);
  // It has its row by now, whatever becomes of the list.
  rmSync(join(killed, "sessions.jsonl"));
  expect(idsIn(killed)).toEqual(["before", "announced"]);
});

test("a session that was closed does not come back where the list could not be told of its end", async () => {
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
