import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createLog, lostLines } from "../../server/log.ts";

test("the daemon's log omits fields whose names mark them as tokens", () => {
  const directory = mkdtempSync(join(tmpdir(), "log-"));
  const file = join(directory, "daemon.log");
  const log = createLog({ level: "trace", file });
  log.info({ token: "t-1", file: { token: "t-2" }, headers: { authorization: "t-3" }, authorization: "t-4" }, "said");
  const text = readFileSync(file, "utf8");
  rmSync(directory, { recursive: true });
  expect(text).not.toMatch(/t-[1-4]/);
  expect(text).toContain("said");
});

test("a log reports how many lines could not be written to its file", () => {
  expect(existsSync("/dev/full")).toBe(process.platform === "linux");
  const log = createLog({ level: "info", file: process.platform === "linux" ? "/dev/full" : "/dev/null" });
  log.info("one");
  log.info("two");
  expect(lostLines(log)).toBe(process.platform === "linux" ? 2 : 0);
});
