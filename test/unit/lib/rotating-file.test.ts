import fs, { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { RotatingFile } from "../../../server/lib/rotating-file.ts";

const { openSync, writeSync, renameSync, ftruncateSync } = fs;
const spaceless = (): never => {
  throw Object.assign(new Error("no space"), { code: "ENOSPC" });
};
let folder = "";
let path = "";

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rotating-"));
  path = join(folder, "log");
});
afterEach(() => {
  restore();
  rmSync(folder, { recursive: true });
});

function replace(functions: Partial<typeof fs>): void {
  Object.assign(fs, functions);
  syncBuiltinESMExports();
}

function restore(): void {
  replace({ openSync, writeSync, renameSync, ftruncateSync });
}

const linesOf = (name: string): readonly string[] => readFileSync(join(folder, name), "utf8").split("\n").slice(0, -1);

test("is renamed at its limit and started again", () => {
  const file = new RotatingFile(path, 10);
  for (const line of ["first line\n", "second line\n", "third\n"]) file.write(line);
  expect([linesOf("log.1"), linesOf("log"), file.lost]).toEqual([["second line"], ["third"], 0]);
  expect(readdirSync(folder).toSorted()).toEqual(["log", "log.1"]);
});

test.each([
  ["no file can be opened", { openSync: spaceless as typeof openSync }],
  ["none can be renamed", { renameSync: spaceless as typeof renameSync }],
])("goes on in the old file while %s, and closes nothing of anybody's", (_why, failing) => {
  const file = new RotatingFile(path, 32);
  file.write(`${"x".repeat(32)}\n`);
  replace(failing);
  for (let at = 0; at < 20; at += 1) file.write(`line ${at}\n`);
  restore();
  const before = linesOf("log");
  // Up to twice the limit; then they are counted.
  expect(before.slice(1)).toEqual(["line 0", "line 1", "line 2", "line 3", "line 4"]);
  expect(file.lost).toBe(15);
  const other = openSync(join(folder, "other"), "w");
  file.write("there is room again\n");
  writeSync(other, "mine");
  fs.closeSync(other);
  expect([linesOf("log.1"), linesOf("log"), file.lost]).toEqual([before, ["there is room again"], 15]);
  expect(readFileSync(join(folder, "other"), "utf8")).toBe("mine");
  expect(readdirSync(folder).toSorted()).toEqual(["log", "log.1", "other"]);
});

test("a file that was removed by another program is created again", () => {
  const file = new RotatingFile(path, 10);
  file.write("first line\n");
  rmSync(path);
  file.write("second\n");
  expect([linesOf("log"), file.lost]).toEqual([["second"], 0]);
});

test.each([
  ["taken back", {}, ["whole", "later"]],
  ["a separate line if that fails", { ftruncateSync: spaceless }, ["whole", "the ", "later"]],
])("a line of which the disk takes only a part is %s", (_what, failing, expected) => {
  const file = new RotatingFile(path, 1_000);
  file.write("whole\n");
  let calls = 0;
  const short = (descriptor: number, bytes: Buffer): number => {
    calls += 1;
    return calls === 1 ? writeSync(descriptor, bytes, 0, 4) : spaceless();
  };
  replace({ writeSync: short as typeof writeSync, ...failing });
  file.write("the disk is full\n");
  restore();
  file.write("later\n");
  expect([linesOf("log"), file.lost]).toEqual([expected, 1]);
});

test("a line that is written in parts is complete", () => {
  const file = new RotatingFile(path, 1_000);
  const short = (descriptor: number, bytes: Buffer, from = 0): number => writeSync(descriptor, bytes, from, 1);
  replace({ writeSync: short as typeof writeSync });
  file.write("in parts: ä\n");
  restore();
  expect([linesOf("log"), file.lost]).toEqual([["in parts: ä"], 0]);
});
