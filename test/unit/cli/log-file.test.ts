import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LogFile, lastLines } from "../../../cli/log-file.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "log-"));
});
afterEach(() => rmSync(root, { recursive: true }));

test("a log is created with its folders, private to its owner", () => {
  const log = LogFile.open(join(root, "a", "b", "daemon.log"));
  log?.close();
  expect(statSync(join(root, "a", "b", "daemon.log")).mode & 0o777).toBe(0o600);
  expect(statSync(join(root, "a", "b")).mode & 0o777).toBe(0o700);
});

test("only the directories created for a log are removed", () => {
  const log = LogFile.open(join(root, "a", "b", "daemon.log"));
  log?.close();
  log?.remove();
  expect(existsSync(join(root, "a"))).toBe(false);
  expect(existsSync(root)).toBe(true);
});

test("a folder with other content is kept", () => {
  const log = LogFile.open(join(root, "a", "b", "daemon.log"));
  log?.close();
  writeFileSync(join(root, "a", "other"), "");
  log?.remove();
  expect(existsSync(join(root, "a", "b"))).toBe(false);
  expect(existsSync(join(root, "a", "other"))).toBe(true);
});

test("an existing log is kept", () => {
  mkdirSync(join(root, "a"));
  writeFileSync(join(root, "a", "daemon.log"), "before\n");
  const log = LogFile.open(join(root, "a", "daemon.log"));
  log?.close();
  log?.remove();
  expect(lastLines(join(root, "a", "daemon.log"), 3)).toEqual(["before"]);
});

test("there is no log if none can be created", () => {
  writeFileSync(join(root, "file"), "");
  expect(LogFile.open(join(root, "file", "daemon.log"))).toBeUndefined();
});

test("the last lines are the last non-empty ones", () => {
  writeFileSync(join(root, "log"), "one\ntwo\n\nthree\n");
  expect(lastLines(join(root, "log"), 2)).toEqual(["two", "three"]);
  expect(lastLines(join(root, "missing"), 2)).toEqual([]);
});
