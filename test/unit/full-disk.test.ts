import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pino } from "pino";
import { expect, test } from "vitest";
import { WireError } from "../../protocol/errors.ts";
import { StartError } from "../../server/lib/start-error.ts";
import { diskFull } from "../../server/pi/exhaustion.ts";
import { unusable } from "../../server/pi/open-file.ts";
import { namedStartError } from "../../server/start-errors.ts";
import { checkStore, openStore } from "../../server/store/open-store.ts";

const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC", path: "/a/file" });

test("creating a session on a full disk fails with store_failed, wherever the error occurs", () => {
  for (const error of [full, unusable("/a/file", "disk_full", "cannot be leased", full)]) {
    expect(diskFull(error)).toMatchObject({ kind: "store_failed", message: expect.stringContaining("/a/file") });
  }
  expect(diskFull(new WireError("start_failed", "It ended."))).toBeUndefined();
});

test("a start on a full disk names the state directory and gives advice, and other failures are unchanged", () => {
  const ofSqlite = Object.assign(new Error("database or disk is full"), { errcode: 13 });
  for (const cause of [full, ofSqlite]) {
    const error = namedStartError(new StartError("store_unusable", "It cannot be opened.", { cause }), "/state");
    expect(error).toMatchObject({
      kind: "state_dir_unusable",
      message: expect.stringMatching(/\/state is full.*Free some space/),
    });
  }
  const other = new StartError("port_in_use", "It is in use.");
  expect(namedStartError(other, "/state")).toBe(other);
});

test("a store with a negative number of migrations is refused by name, and left unchanged", () => {
  const directory = mkdtempSync(join(tmpdir(), "store-"));
  try {
    const path = join(directory, "store.db");
    const open = () =>
      openStore({
        ...{ path, found: checkStore(path), log: pino({ level: "silent" }) },
        ...{ findSession: () => undefined, textsIn: () => new Set() },
      });
    open().close();
    const database = new DatabaseSync(path);
    database.exec("PRAGMA user_version = -5;");
    database.close();
    expect(open).toThrow(/user_version is -5.*Move it away/);
    expect(open).toThrow(/user_version is -5/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
