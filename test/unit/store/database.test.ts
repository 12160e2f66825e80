import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Database } from "../../../server/store/database.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "store-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const file = () => join(directory, "store.db");
const insert = "INSERT INTO idempotency (method, key, params_hash, result, at) VALUES (?, ?, ?, ?, ?)";

describe("Database", () => {
  test("has a write on disk when its promise resolves", async () => {
    const database = new Database(file(), () => {});
    await database.write(database.prepare(insert), "m", "k", "h", "{}", 1);
    const other = new DatabaseSync(file(), { readOnly: true });
    expect(other.prepare("SELECT key FROM idempotency").all()).toEqual([{ key: "k" }]);
    other.close();
    database.close();
  });

  test("commits the writes of one turn together, and without an invalid one", async () => {
    const failures: unknown[] = [];
    const database = new Database(file(), (error) => failures.push(error));
    const statement = database.prepare(insert);
    const outcomes = await Promise.allSettled([
      database.write(statement, "m", "a", "h", "{}", 1),
      database.write(statement, "m", "a", "h", "{}", 1),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
    expect(failures).toHaveLength(1);
    expect(database.prepare("SELECT count(*) AS n FROM idempotency").get()).toEqual({ n: 1 });
    const before = database.commits;
    await Promise.all(["b", "c"].map((key) => database.write(statement, "m", key, "h", "{}", 1)));
    expect(database.commits).toBe(before + 1);
    database.close();
  });

  test("stores a group completely or not at all, whatever shares its transaction", async () => {
    const database = new Database(file(), () => {});
    const statement = database.prepare(insert);
    const wrong = database.prepare("INSERT INTO commits VALUES (1, 1)");
    const values = (key: string) => ["m", key, "h", "{}", 1] as const;
    const outcomes = await Promise.allSettled([
      database.together("a", statement, ...values("a1")),
      database.write(statement, ...values("x")),
      database.together("b", statement, ...values("b1")),
      database.write(wrong),
      database.together("a", wrong),
      database.together("b", statement, ...values("b2")),
    ]);
    expect(outcomes.map(({ status }) => status === "fulfilled")).toEqual([false, true, true, false, false, true]);
    const stored = database.prepare("SELECT key FROM idempotency ORDER BY key").all();
    expect(stored.map(({ key }) => key)).toEqual(["b1", "b2", "x"]);
    database.close();
  });

  test("writes queued changes when it is closed", () => {
    const database = new Database(file(), () => {});
    void database.write(database.prepare(insert), "m", "k", "h", "{}", 1);
    database.close();
    const again = new Database(file(), () => {});
    expect(again.prepare("SELECT count(*) AS n FROM idempotency").get()).toEqual({ n: 1 });
    again.close();
  });

  test("accepts nothing when the disk is full, and continues when there is space again", async () => {
    const database = new Database(file(), () => {});
    const statement = database.prepare(insert);
    database.prepare("PRAGMA max_page_count = 20").get();
    await expect(database.write(statement, "m", "big", "h", "x".repeat(500_000), 1)).rejects.toThrow(/full/);
    await expect(database.write(statement, "m", "small", "h", "{}", 1)).resolves.toBeUndefined();
    expect(database.prepare("SELECT key FROM idempotency").all()).toEqual([{ key: "small" }]);
    database.close();
  });

  test("refuses a store that a newer version has written", () => {
    new Database(file(), () => {}).close();
    const raw = new DatabaseSync(file());
    raw.exec("PRAGMA user_version = 999");
    raw.close();
    expect(() => new Database(file(), () => {})).toThrow(/newer pi-rpcd/);
  });
});
