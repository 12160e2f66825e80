import { execFileSync } from "node:child_process";
import { closeSync, constants, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { promptIn } from "../../../../../context/parts/compaction/compaction.ts";

function directory(): string {
  const made = mkdtempSync(join(tmpdir(), "prompt-"));
  onTestFinished(() => rmSync(made, { recursive: true }));
  return made;
}

test("the prompt for summaries is the content of a regular file, and an empty one is ignored", () => {
  const file = join(directory(), "prompt.md");
  writeFileSync(file, "  Say it in one line.\n");
  expect(promptIn(file)).toBe("Say it in one line.");
  writeFileSync(file, " \n");
  expect(() => promptIn(file)).toThrow("is empty");
});

test("a pipe that replaced the file is neither awaited nor read", () => {
  const pipe = join(directory(), "prompt.md");
  execFileSync("mkfifo", [pipe]);
  // Held open with words in it, so that a reader gets them and does not hang.
  const held = openSync(pipe, constants.O_RDWR);
  onTestFinished(() => closeSync(held));
  writeSync(held, "Words of a pipe.");
  expect(() => promptIn(pipe)).toThrow("is not a regular file");
});
