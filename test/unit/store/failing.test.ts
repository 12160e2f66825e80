import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { WireError } from "../../../protocol/errors.ts";
import { limits } from "../../../server/configuration/limits.ts";
import { Database } from "../../../server/store/database.ts";
import { type FailingConnection, failingConnection } from "../../helpers/failing-connection.ts";

let directory: string;
let connection: FailingConnection;
let recovered: PromiseWithResolvers<void>;
let database: Database;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "failing-"));
  connection = failingConnection();
  recovered = Promise.withResolvers();
  const onRecovered = () => recovered.resolve();
  database = new Database(join(directory, "store.db"), () => {}, { connect: connection.connect, onRecovered });
});
afterEach(() => {
  database.close();
  rmSync(directory, { recursive: true });
});

const insert = "INSERT OR REPLACE INTO idempotency (method, key, params_hash, result, at) VALUES ('m', ?, 'h', ?, 1)";
const write = (key: string) => database.write(database.prepare(insert), key, "{}");
const keep = (key: string, result: string) => database.keep(key, database.prepare(insert), key, result);
const kindOf = (work: Promise<void>) =>
  work.then(
    () => "stored",
    (error: WireError) => error.kind ?? "other",
  );

/** What another process finds on disk. */
function onDisk(): readonly unknown[] {
  const other = new DatabaseSync(join(directory, "store.db"), { readOnly: true });
  try {
    return other
      .prepare("SELECT key, result FROM idempotency ORDER BY key")
      .all()
      .map((row) => Object.values(row).join());
  } finally {
    other.close();
  }
}

describe("a store that fails", () => {
  for (const fault of ["COMMIT", "INSERT", "BEGIN", "UPDATE commits"] as const) {
    test(`refuses the writes hit by a system error at ${fault}, and continues with another connection`, async () => {
      await write("before");
      connection.fail(fault);
      expect(await kindOf(write("lost"))).toBe("store_failed");
      expect(connection.opened).toBe(2);
      expect(database.health).toEqual({ state: "open" });
      expect(await kindOf(write("after"))).toBe("stored");
      expect(connection.commits.at(-1)).toBe(2);
      expect(onDisk()).toEqual(["after,{}", "before,{}"]);
    });
  }

  test("refuses writes and still reads while it cannot be opened again, and reports since when and why", async () => {
    await write("before");
    connection.fail("open", Number.MAX_SAFE_INTEGER);
    connection.fail("COMMIT");
    expect(await kindOf(write("lost"))).toBe("store_failed");
    expect(database.health).toMatchObject({ state: "failing", why: expect.stringContaining("disk I/O error") });
    expect(await kindOf(write("refused"))).toBe("store_failed");
    expect(database.prepare("SELECT key FROM idempotency").all()).toEqual([{ key: "before" }]);
    connection.fail("open", 0);
    await recovered.promise;
    expect(database.health).toEqual({ state: "open" });
    expect(await kindOf(write("after"))).toBe("stored");
    expect(onDisk()).toEqual(["after,{}", "before,{}"]);
  });

  test("writes the changes made in the meantime when it works again, the newest of each key, and always before it ends", async () => {
    connection.fail("open", Number.MAX_SAFE_INTEGER);
    connection.fail("COMMIT");
    const first = keep("a", "1");
    expect(await kindOf(first)).toBe("store_failed");
    expect(await kindOf(keep("a", "2"))).toBe("store_failed");
    expect(await kindOf(keep("b", "1"))).toBe("store_failed");
    expect(database.unwritten).toBe(2);
    connection.fail("open", 0);
    await recovered.promise;
    expect(database.unwritten).toBe(0);
    expect(onDisk()).toEqual(["a,2", "b,1"]);

    connection.fail("open", 1);
    connection.fail("COMMIT");
    expect(await kindOf(keep("b", "2"))).toBe("store_failed");
    database.close();
    expect(onDisk()).toEqual(["a,2", "b,2"]);
    database = new Database(join(directory, "store.db"), () => {});
  });

  test.each([
    ["number", { maxUnwritten: 4 }],
    ["bytes", { maxUnwrittenBytes: 1_500 }],
  ] as const)(
    "keeps at most a limited backlog (%s): new work is refused below the limit, and changes at it",
    async (_, bound) => {
      database.close();
      database = new Database(join(directory, "store.db"), () => {}, {
        connect: connection.connect,
        onRecovered: () => recovered.resolve(),
        limits: { ...limits.store, ...bound },
      });
      const text = "x".repeat(300);
      connection.fail("open", Number.MAX_SAFE_INTEGER);
      connection.fail("COMMIT");
      expect(await kindOf(keep("a", text))).toBe("store_failed");
      expect(await kindOf(write("refused"))).toBe("store_failed");
      expect(await Promise.all(["b", "c", "d"].map((key) => kindOf(keep(key, text))))).toEqual(
        Array(3).fill("store_failed"),
      );
      expect(await kindOf(write("refused"))).toBe("overloaded");
      expect(await kindOf(keep("e", text))).toBe("overloaded");
      expect(await kindOf(keep("a", "newer"))).toBe("store_failed");
      expect(database.unwritten).toBe(4);
      connection.fail("open", 0);
      await recovered.promise;
      expect(onDisk()).toEqual(["a,newer", ...["b", "c", "d"].map((key) => `${key},${text}`)]);
      expect(await kindOf(write("after"))).toBe("stored");
    },
  );

  test("keeps its connection when the disk is full, and writes again when there is room", async () => {
    await write("before");
    database.prepare("PRAGMA max_page_count = 30").get();
    const large = "x".repeat(500_000);
    expect(await kindOf(database.write(database.prepare(insert), "large", large))).toBe("store_failed");
    expect(await kindOf(keep("kept", large))).toBe("store_failed");
    expect(database.health.state).toBe("failing");
    expect(await kindOf(write("small"))).toBe("stored");
    expect(connection.opened).toBe(1);
    expect(database.unwritten).toBe(1);
    database.prepare("PRAGMA max_page_count = 1000000").get();
    await recovered.promise;
    expect(onDisk()).toEqual(["before,{}", `kept,${large}`, "small,{}"]);
  });

  test("does not consider a damaged database repaired", async () => {
    await write("before");
    connection.fail("COMMIT", 1, 11);
    connection.fail("open", Number.MAX_SAFE_INTEGER, 11);
    expect(await kindOf(write("lost"))).toBe("store_failed");
    expect(await kindOf(write("refused"))).toBe("store_failed");
    expect(database.health.state).toBe("failing");
    expect(onDisk()).toEqual(["before,{}"]);
  });

  test("does not report a failure of the store for an invalid statement", async () => {
    await expect(database.write(database.prepare("INSERT INTO commits VALUES (1, 1)"))).rejects.toThrow(/UNIQUE/);
    expect(database.health).toEqual({ state: "open" });
    expect(await kindOf(write("after"))).toBe("stored");
  });
});
