import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startDaemon } from "../../../server/daemon.ts";
import { DeliveryStore } from "../../../server/store/deliveries.ts";
import { migrate, schemaVersion } from "../../../server/store/migrations.ts";
import { PromptStore, type StoredPrompt } from "../../../server/store/prompts.ts";
import { backUpOlder } from "../../../server/store/upgrade.ts";
import { open, pushOf, storedDelivery, storedPrompt, storedSession } from "../../helpers/stored.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "upgrade-"));
});
afterEach(() => rmSync(root, { recursive: true }));

const store = () => join(root, "store.db");
const backups = () => readdirSync(root).filter((name) => name.startsWith("store.db.shape-"));
const olderShapes = Array.from({ length: schemaVersion - 1 }, (_, at) => at + 1);

/** A store left by an older version, with one session. */
function writeOlder(shape: number, path = store()): void {
  const database = new DatabaseSync(path);
  database.exec("PRAGMA journal_mode = WAL");
  migrate(database, shape);
  const { sessionId, cwd, file, createdAt, updatedAt, ...more } = storedSession("s1");
  const record = JSON.stringify({ sessionId, cwd, file, createdAt, updatedAt, ...more });
  database
    .prepare("INSERT INTO sessions (session_id, cwd, file, record, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?)")
    .run(sessionId, cwd, file, record, createdAt, updatedAt);
  database.close();
}

function look(path: string): { readonly shape: number; readonly sessions: unknown; readonly check: unknown } {
  const database = new DatabaseSync(path, { readOnly: true });
  const one = (sql: string): unknown => Object.values(database.prepare(sql).get() ?? {})[0];
  const found = {
    shape: Number(one("PRAGMA user_version")),
    sessions: one("SELECT count(*) FROM sessions"),
    check: one("PRAGMA integrity_check"),
  };
  database.close();
  return found;
}

describe("a store of an older version", () => {
  test.each(olderShapes)("of shape %i is copied privately and completely, and migrated with its content", (shape) => {
    writeOlder(shape);
    const opened = open(root);
    expect(opened.sessions.all().map(({ sessionId }) => sessionId)).toEqual(["s1"]);
    opened.close();
    expect(look(store())).toEqual({ shape: schemaVersion, sessions: 1, check: "ok" });
    const [copy = ""] = backups();
    expect(backups()).toEqual([expect.stringMatching(new RegExp(`^store\\.db\\.shape-${shape}-\\d{8}T\\d{9}Z$`))]);
    expect(look(join(root, copy))).toEqual({ shape, sessions: 1, check: "ok" });
    expect(statSync(join(root, copy)).mode & 0o777).toBe(0o600);
    open(root).close();
    expect(backups()).toEqual([copy]);
  });

  test("keeps the order of its deliveries and prompts, and later ones follow", async () => {
    writeOlder(6);
    const database = new DatabaseSync(store());
    const insert = (table: string, values: Readonly<Record<string, string | number>>) =>
      database
        .prepare(`INSERT INTO ${table} (${Object.keys(values)}) VALUES (${Object.keys(values).map(() => "?")})`)
        .run(...Object.values(values));
    for (const [id, created_at] of [
      ["z", 1],
      ["y", 1],
      ["x", 2],
    ] as const) {
      const [push, record] = [pushOf(id, "text"), storedDelivery(id, "s1")].map((value) => JSON.stringify(value));
      insert("deliveries", { delivery_id: id, session_id: "s1", settled: 0, push, record, created_at } as never);
      insert("prompts", { prompt_id: id, session_id: "s1", text: "t", state: "queued", created_at });
    }
    database.close();
    const opened = open(root);
    const [deliveries, prompts] = [new DeliveryStore(opened.database), new PromptStore(opened.database)];
    await deliveries.add({ push: pushOf("a", "text"), delivery: storedDelivery("a", "s1") });
    await prompts.add(storedPrompt("a", "s1"));
    await prompts.put({ ...(prompts.get("z") as StoredPrompt), state: "inserted" });
    expect(deliveries.open().map(({ push }) => push.deliveryId)).toEqual(["z", "y", "x", "a"]);
    expect(prompts.open("s1").map(({ promptId }) => promptId)).toEqual(["y", "z", "x", "a"]);
    expect(prompts.list("s1", ["queued"], 9).map(({ promptId }) => promptId)).toEqual(["x", "y"]);
    opened.close();
  });

  test("keeps its settled deliveries, lists them in order, and reports later ends in the feed", async () => {
    writeOlder(10);
    const database = new DatabaseSync(store());
    const insert = database.prepare(
      `INSERT INTO deliveries (delivery_id, session_id, settled, settled_at, push, record, created_at, bytes, number)
       VALUES (?, 's1', ?, ?, ?, ?, 1, 9, ?)`,
    );
    for (const [id, settled, number] of [
      ["c", 1, 7],
      ["a", 0, 3],
      ["b", 1, 5],
    ] as const) {
      const delivery = storedDelivery(id, "s1", settled === 1 ? { state: "cancelled", settledAt: 2 } : {});
      insert.run(
        id,
        settled,
        settled === 1 ? 2 : null,
        JSON.stringify(pushOf(id, "text")),
        JSON.stringify(delivery),
        number,
      );
    }
    database.close();
    const opened = open(root);
    const deliveries = new DeliveryStore(opened.database, { maxSettled: 1 });
    const all = () => deliveries.list({ limit: 9 }).map(({ deliveryId, state }) => `${deliveryId} ${state}`);
    expect(all()).toEqual(["c cancelled", "b cancelled", "a accepted"]);
    await deliveries.update(storedDelivery("a", "s1", { state: "expired", settledAt: 3 }), true);
    expect(opened.database.prepare("SELECT item_id, state FROM feed WHERE kind = 'delivery'").all()).toEqual([
      { item_id: "a", state: "expired" },
    ]);
    await deliveries.limit();
    expect(all()).toEqual(["a expired"]);
    opened.close();
  });

  test("can be restored from its copy, as ARCHITECTURE.md describes", () => {
    writeOlder(schemaVersion - 1);
    const opened = open(root);
    opened.database.flush();
    opened.close();
    const [copy = ""] = backups();
    for (const name of ["store.db", "store.db-wal", "store.db-shm", "store.mark"])
      rmSync(join(root, name), { force: true });
    renameSync(join(root, copy), store());
    expect(look(store())).toMatchObject({ shape: schemaVersion - 1, sessions: 1 });
    const again = open(root);
    expect([again.sessions.all().length, again.info().damaged]).toEqual([1, []]);
    again.close();
  });

  test("is not changed if it cannot be copied, and the failure is reported", () => {
    writeOlder(1);
    mkdirSync(join(root, "store.db.copying", "in the way"), { recursive: true });
    expect(() => open(root)).toThrow(/cannot be copied before its migration/);
    expect(look(store())).toEqual({ shape: 1, sessions: 1, check: "ok" });
    rmSync(join(root, "store.db.copying"), { recursive: true });
    // Files of a daemon that was killed while it copied.
    writeFileSync(join(root, "store.db.copying"), "half of it");
    open(root).close();
    expect(backups()).toHaveLength(1);
    expect(readdirSync(root)).not.toContain("store.db.copying");
  });

  test("is kept in 2 copies, and one daemon that fails repeatedly does not displace the first copy", () => {
    const copyAt = (shape: number, now: number): void => {
      rmSync(store(), { force: true });
      writeOlder(shape);
      backUpOlder(store(), now);
    };
    for (const [at, shape] of [1, 2, 3, 3, 3].entries()) copyAt(shape, at * 1_000);
    expect(backups().sort()).toEqual(["store.db.shape-2-19700101T000001000Z", "store.db.shape-3-19700101T000004000Z"]);
  });
});

test("nothing is copied for a missing store, an empty one, or one of this version", () => {
  expect(backUpOlder(store(), 0)).toBeUndefined();
  writeFileSync(store(), "");
  expect(backUpOlder(store(), 0)).toBeUndefined();
  rmSync(store());
  open(root).close();
  expect(backUpOlder(store(), 0)).toBeUndefined();
  expect(backups()).toEqual([]);
});

test("a daemon does not start on a newer version's store, reports it by name, and does not change a byte", async () => {
  writeOlder(schemaVersion);
  const raw = new DatabaseSync(store());
  raw.exec(`PRAGMA user_version = ${schemaVersion + 1}`);
  raw.close();
  const before = readFileSync(store());
  const start = startDaemon({
    stateDir: root,
    pi: join(import.meta.dirname, "..", "..", "fixtures", "fake-pi.mjs"),
    env: { ...process.env, XDG_CONFIG_HOME: root },
    log: pino({ level: "silent" }),
  });
  await expect(start).rejects.toMatchObject({
    kind: "store_too_new",
    message: expect.stringMatching(
      /newer pi-rpcd \(schema version \d+; this version supports \d+\).*Use the newer version/,
    ),
  });
  expect(readFileSync(store()).equals(before)).toBe(true);
  expect(backups()).toEqual([]);
});
