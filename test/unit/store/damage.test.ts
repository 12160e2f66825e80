import {
  chmodSync,
  copyFileSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DeliveryStore } from "../../../server/store/deliveries.ts";
import { PromptStore } from "../../../server/store/prompts.ts";
import {
  contents,
  copyStore,
  fillStore,
  open,
  pushOf,
  rowsIn,
  storedDelivery,
  storedSession,
} from "../../helpers/stored.ts";

let root: string;
/** A store left by a killed daemon, and one whose WAL was moved into the database. */
let killed: string;
let ended: string;
let before: ReadonlyMap<string, string>;
let rows: readonly string[];
beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), "damage-"));
  const store = open(root);
  // So few that the WAL does not wrap: its newest frame is the last in its file.
  await fillStore(store, 20);
  before = contents(store);
  rows = rowsIn(store.database);
  killed = copyStore(root, join(root, "killed"));
  store.close();
  ended = copyStore(root, join(root, "ended"));
});
afterAll(() => rmSync(root, { recursive: true }));

let copies = 0;
function copyOf(original: string): string {
  copies += 1;
  return copyStore(original, join(root, `copy${copies}`));
}

function change(file: string, work: (bytes: Buffer) => void): void {
  const bytes = readFileSync(file);
  work(bytes);
  writeFileSync(file, bytes);
}

const frame = 4_096 + 24;
const wal = "store.db-wal";
const db = "store.db";
const size = (directory: string, name: string) => statSync(join(directory, name)).size;

interface Fault {
  readonly title: string;
  readonly of: () => string;
  readonly damage: (directory: string) => void;
}

const cutWal = (bytes: number) => (directory: string) =>
  truncateSync(join(directory, wal), size(directory, wal) - bytes);
const inFile = (name: string, work: (bytes: Buffer) => void) => (directory: string) =>
  change(join(directory, name), work);
const flip = (share: number) => (bytes: Buffer) => {
  const at = Math.floor((bytes.length - 1) * share);
  bytes[at] = (bytes[at] ?? 0) ^ 1;
};

const faults: readonly Fault[] = [
  { title: "the WAL's last frame cut off", of: () => killed, damage: cutWal(frame) },
  { title: "the WAL torn within its last frame", of: () => killed, damage: cutWal(100) },
  { title: "half of the WAL cut off", of: () => killed, damage: (d) => cutWal(Math.floor(size(d, wal) / 2))(d) },
  { title: "the whole WAL gone", of: () => killed, damage: (d) => rmSync(join(d, wal)) },
  { title: "the WAL's header flipped", of: () => killed, damage: inFile(wal, (b) => b.writeUInt8(1, 0)) },
  { title: "a bit flipped in the middle of the WAL", of: () => killed, damage: inFile(wal, flip(0.5)) },
  { title: "a bit flipped at the WAL's end", of: () => killed, damage: inFile(wal, flip(0.999)) },
  {
    title: "the WAL's end filled with zeros",
    of: () => killed,
    damage: inFile(wal, (b) => b.fill(0, b.length - 9_000)),
  },
  { title: "the first 100 bytes filled with zeros", of: () => ended, damage: inFile(db, (b) => b.fill(0, 0, 100)) },
  { title: "the first page filled with zeros", of: () => ended, damage: inFile(db, (b) => b.fill(0, 0, 4_096)) },
  {
    title: "a page in the middle filled with zeros",
    of: () => ended,
    damage: inFile(db, (b) => b.fill(0, 81_920, 86_016)),
  },
  { title: "its second half cut off", of: () => ended, damage: (d) => truncateSync(join(d, db), size(d, db) / 2) },
  {
    title: "its end torn within a page",
    of: () => ended,
    damage: (d) => truncateSync(join(d, db), size(d, db) - 1_000),
  },
  { title: "its end filled with zeros", of: () => ended, damage: inFile(db, (b) => b.fill(0, b.length - 20_000)) },
  { title: "no bytes at all", of: () => ended, damage: (d) => truncateSync(join(d, db), 0) },
  { title: "the database gone", of: () => ended, damage: (d) => rmSync(join(d, db)) },
  { title: "other bytes in its first page", of: () => ended, damage: inFile(db, (b) => b.fill(0xff, 0, 4_096)) },
  {
    title: "the page of a push filled with zeros",
    of: () => ended,
    damage: inFile(db, (b) => {
      const at = b.indexOf("content 13 ");
      b.fill(0, at - (at % 4_096), at - (at % 4_096) + 4_096);
    }),
  },
  {
    title: "one letter of a push changed",
    of: () => ended,
    damage: inFile(db, (b) => b.write("X", b.indexOf("content 7 "), "latin1")),
  },
  { title: "other bytes altogether", of: () => ended, damage: (d) => writeFileSync(join(d, db), "x".repeat(50_000)) },
];

describe("a damaged store", () => {
  for (const { title, of, damage } of faults) {
    test(`with ${title} is set aside, and rebuilt completely from its log`, () => {
      const directory = copyOf(of());
      damage(directory);
      const store = open(directory);
      const { damaged } = store.info();
      expect(damaged).toHaveLength(1);
      const [report] = damaged;
      const after = contents(store);
      expect(after).toEqual(before);
      expect(rowsIn(store.database)).toEqual(rows);
      expect(report?.kept).toMatchObject({ sessions: 3, sessionsFromList: 0, prompts: 3, deliveries: 60 });
      expect(report?.lost).toEqual({ transactions: 0, sessionIds: [] });
      expect(report?.why).toMatch(/\.$/);
      if (title !== "the database gone") expect(statSync(report?.path ?? "").mode & 0o777).toBe(0o600);
      expect(store.sessions.all().every(({ reservedSeq }) => reservedSeq > 1_000_000_000_000_000)).toBe(true);
      store.close();
      // It is intact again, and the report stays visible.
      const again = open(directory);
      expect(again.info().damaged).toEqual(damaged);
      expect(contents(again)).toEqual(after);
      again.close();
    });
  }

  test("is rebuilt if the mark is missing in addition to the database", () => {
    const directory = copyOf(ended);
    rmSync(join(directory, db));
    rmSync(join(directory, "store.mark"));
    const store = open(directory);
    expect(contents(store)).toEqual(before);
    store.close();
  });

  test("is never silent: after any change of the file nothing is wrong or missing", () => {
    let state = 20_240_101;
    const random = (below: number): number => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
      return Math.floor((state / 2 ** 32) * below);
    };
    let reported = 0;
    for (let round = 0; round < 60; round += 1) {
      const directory = copyOf(round % 2 === 0 ? killed : ended);
      const name = round % 2 === 0 && round % 4 === 0 ? wal : db;
      change(join(directory, name), (bytes) => {
        const at = random(bytes.length);
        if (round % 3 === 0) bytes.fill(0, at, Math.min(bytes.length, at + 1 + random(9_000)));
        else if (round % 3 === 1) bytes[at] = (bytes[at] ?? 0) ^ (1 << random(8));
        else for (let i = at; i < Math.min(bytes.length, at + 600); i += 1) bytes[i] = random(256);
      });
      if (random(3) === 0) truncateSync(join(directory, name), random(size(directory, name)));
      const store = open(directory);
      const after = contents(store);
      const { damaged } = store.info();
      expect(after, `round ${round}`).toEqual(before);
      expect(rowsIn(store.database), `round ${round}`).toEqual(rows);
      reported += damaged.length;
      store.close();
      rmSync(directory, { recursive: true });
    }
    expect(reported).toBeGreaterThan(30);
  });

  test("keeps the three newest of those that were set aside", () => {
    const directory = copyOf(ended);
    for (let i = 0; i < 5; i += 1) {
      truncateSync(join(directory, db), 8_192);
      open(directory).close();
    }
    const store = open(directory);
    const { damaged } = store.info();
    expect(damaged).toHaveLength(3);
    expect(damaged.map(({ at }) => at)).toEqual(damaged.map(({ at }) => at).sort((a, b) => b - a));
    store.close();
  });

  test("is left alone if it cannot be read for another reason, and the daemon does not start", () => {
    const directory = copyOf(ended);
    chmodSync(join(directory, db), 0o000);
    // A superuser can read it anyway.
    if (process.getuid?.() === 0) expect(() => open(directory).close()).not.toThrow();
    else expect(() => open(directory)).toThrow(/unable to open|permission/);
    expect(size(directory, db)).toBe(size(ended, db));
  });

  test("is put in place by the next daemon if one was killed in between", () => {
    const directory = copyOf(ended);
    truncateSync(join(directory, db), 8_192);
    const store = open(directory);
    const [report] = store.info().damaged;
    const kept = contents(store);
    store.close();
    // The state directly before the last rename.
    const interrupted = copyStore(directory, join(root, "interrupted"));
    rmSync(join(interrupted, wal), { force: true });
    writeFileSync(join(interrupted, "store.db.rebuilt"), readFileSync(join(interrupted, db)));
    const path = join(interrupted, "store.db.damaged-x");
    writeFileSync(join(interrupted, "store.db.rebuilt.json"), JSON.stringify({ ...report, path }));
    rmSync(join(interrupted, db));
    const next = open(interrupted);
    expect(contents(next)).toEqual(kept);
    expect(next.info().damaged.map((damage) => damage.path)).toEqual([path]);
    next.close();
  });
});

/** Removes lines of the log. */
function withoutLines(directory: string, isRemoved: (line: string, index: number, all: readonly string[]) => boolean) {
  const file = join(directory, "store.changes");
  const lines = readFileSync(file, "utf8").split("\n");
  writeFileSync(file, lines.filter((line, index) => !isRemoved(line, index, lines)).join("\n"));
}

describe("a store whose newest transactions are lost", () => {
  test("parks open pushes that are in the transcript, and does not change others", () => {
    const directory = copyOf(killed);
    rmSync(join(directory, wal));
    withoutLines(directory, (_line, index, all) => index >= all.length - 3);
    const store = open(directory, { textsIn: (_file, texts) => new Set([...texts].filter((id) => id === "d-s3-4")) });
    const deliveries = new DeliveryStore(store.database);
    expect(deliveries.get("d-s3-4")?.delivery).toMatchObject({ state: "parked", reason: { code: "interrupted" } });
    expect(deliveries.get("d-s3-6")?.delivery.state).toBe("accepted");
    expect(store.info().damaged).toMatchObject([
      { why: expect.stringMatching(/ 3 transactions are lost/), lost: { transactions: 3 } },
    ]);
    store.close();
  });

  test("parks nothing if the log has all of them", () => {
    const directory = copyOf(killed);
    rmSync(join(directory, wal));
    const store = open(directory, { textsIn: (_file, texts) => texts });
    expect(contents(store)).toEqual(before);
    store.close();
  });

  test("finds sessions in pi's own files if the list is missing too", () => {
    const directory = copyOf(ended);
    rmSync(join(directory, "sessions.jsonl"));
    withoutLines(directory, (line) => line.includes('\\"generation\\"'));
    truncateSync(join(directory, db), 8_192);
    const asked: string[] = [];
    const store = open(directory, {
      findSession: (sessionId) => {
        asked.push(sessionId);
        return sessionId === "s2" ? { file: "/f", cwd: "/c", createdAt: 7 } : undefined;
      },
    });
    expect(asked.sort()).toEqual(["s1", "s2", "s3"]);
    expect(store.sessions.all()).toMatchObject([{ sessionId: "s2", file: "/f", cwd: "/c", createdAt: 7 }]);
    expect(store.info().damaged[0]).toMatchObject({
      kept: { sessions: 0, sessionsFromFiles: 1, deliveries: 60 },
      lost: { sessionIds: ["s1", "s3"] },
    });
    store.close();
  });

  test("does not bring back a closed session", async () => {
    const directory = mkdtempSync(join(root, "closed-"));
    const first = open(directory);
    const deliveries = new DeliveryStore(first.database);
    const delivery = storedDelivery("d", "one");
    await first.sessions.put(storedSession("one"));
    await deliveries.add({ push: pushOf("d", "x"), delivery });
    await deliveries.update({ ...delivery, state: "failed", settledAt: 2 }, true);
    await first.sessions.delete("one");
    first.close();
    // The daemon in between has rewritten the list.
    open(directory).close();
    // The mark names a commit that does not exist.
    const damaged = copyStore(directory, join(root, "closed-damaged"));
    copyFileSync(join(ended, "store.mark"), join(damaged, "store.mark"));
    const store = open(damaged, { findSession: () => ({ file: "/f", cwd: "/c", createdAt: 7 }) });
    expect(store.info().damaged[0]?.kept).toMatchObject({ sessionsFromFiles: 0, deliveries: 1 });
    expect(store.sessions.all()).toEqual([]);
    store.close();
  });

  test("names no session that was closed, and does not bring it back from pi's file", async () => {
    const directory = copyOf(ended);
    const first = open(directory);
    for (let i = 0; i < 20; i += 2) {
      await new DeliveryStore(first.database).update(storedDelivery(`d-s2-${i}`, "s2", { state: "cancelled" }), true);
    }
    await new PromptStore(first.database).deleteOf("s2");
    await first.sessions.delete("s2");
    first.close();
    // The daemon in between has rewritten the list.
    open(directory).close();
    truncateSync(join(directory, db), size(directory, db) - 4_096);
    const store = open(directory, { findSession: () => ({ file: "/f", cwd: "/c", createdAt: 7 }) });
    expect(store.sessions.all().map(({ sessionId }) => sessionId)).toEqual(["s1", "s3"]);
    expect(store.info().damaged[0]).toMatchObject({ kept: { sessionsFromFiles: 0 }, lost: { sessionIds: [] } });
    store.close();
  });
});
