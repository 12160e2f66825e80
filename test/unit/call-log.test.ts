import { existsSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createCallLog } from "../../server/log.ts";

test("calls are logged in a private file of their own, which the first of them makes", () => {
  const directory = mkdtempSync(join(tmpdir(), "calls-"));
  const log = createCallLog(join(directory, "daemon.log"));
  const file = join(directory, "daemon.calls.log");
  expect(existsSync(file)).toBe(false);
  log.info({ method: "session/abort" }, "call");
  expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ method: "session/abort", msg: "call" });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  rmSync(directory, { recursive: true });
});
