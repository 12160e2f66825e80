import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { makeDirectory, removeDirectory } from "../../../server/lib/make-directory.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "make-"));
});
afterEach(() => rmSync(root, { recursive: true }));

test("the topmost created directory is returned, and removed again with those in it", () => {
  const path = join(root, "a", "b", "c");
  expect(makeDirectory(path, 0o700)).toBe(join(root, "a"));
  expect(["a", "a/b", "a/b/c"].map((name) => statSync(join(root, name)).mode & 0o777)).toEqual([0o700, 0o700, 0o700]);
  expect(makeDirectory(path, 0o700)).toBeUndefined();
  removeDirectory(path, join(root, "a"));
  expect(existsSync(join(root, "a"))).toBe(false);
});

test("a path below a file is refused", () => {
  writeFileSync(join(root, "file"), "");
  expect(() => makeDirectory(join(root, "file", "a"), 0o700)).toThrow("EEXIST");
});

test.runIf(process.platform === "linux")("a path below /proc is refused at once", () => {
  expect(() => makeDirectory("/proc/pi-rpcd/a", 0o700)).toThrow("ENOENT");
});
