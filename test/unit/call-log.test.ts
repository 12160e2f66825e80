import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createCallLog, lostLines } from "../../server/log.ts";

test("calls are logged in a private file, which the first call creates", () => {
  const directory = mkdtempSync(join(tmpdir(), "calls-"));
  const log = createCallLog(join(directory, "daemon.log"));
  const file = join(directory, "daemon.calls.log");
  expect(existsSync(file)).toBe(false);
  log.info({ method: "session/abort" }, "call");
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ method: "session/abort", msg: "call" });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  rmSync(directory, { recursive: true });
});

test("calls lost because the file could not be created are counted, and a later call reports them", () => {
  const directory = mkdtempSync(join(tmpdir(), "calls-"));
  const log = createCallLog(join(directory, "daemon.log"));
  const file = join(directory, "daemon.calls.log");
  mkdirSync(file);
  log.info({ method: "token/create" }, "call");
  log.info({ method: "token/revoke" }, "call");
  expect(lostLines(log)).toBe(2);
  rmSync(file, { recursive: true });
  log.info({ method: "session/abort" }, "call");
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ method: "session/abort" });
  expect(lostLines(log)).toBe(2);
  rmSync(directory, { recursive: true });
});
