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

test("the prompt for summaries is what a plain file says, and an empty one says nothing", () => {
  const file = join(directory(), "prompt.md");
  writeFileSync(file, "  Say it in one line.\n");
  expect(promptIn(file)).toBe("Say it in one line.");
  writeFileSync(file, " \n");
  expect(() => promptIn(file)).toThrow("is empty");
});

test("a pipe that came into the file's place is neither waited for nor read", () => {
  const pipe = join(directory(), "prompt.md");
  execFileSync("mkfifo", [pipe]);
  // Held open with words in it, so that who reads it gets them and does not hang.
  const held = openSync(pipe, constants.O_RDWR);
  onTestFinished(() => closeSync(held));
  writeSync(held, "Words of a pipe.");
  expect(() => promptIn(pipe)).toThrow("is not a regular file");
});
