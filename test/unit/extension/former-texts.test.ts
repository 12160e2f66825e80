import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FormerTexts } from "../../../extension/former-texts.ts";
import type { OutwardBody } from "../../../extension/link/outbound.ts";

let cwd = "";
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), "former-"));
});
afterAll(() => rmSync(cwd, { recursive: true }));

const mebibyte = 1024 * 1024;

function reader() {
  const sent: OutwardBody[] = [];
  const texts = new FormerTexts((frame) => void sent.push(frame));
  let calls = 0;
  const called = async (path: unknown, toolName = "write", isWanted = true): Promise<string> => {
    calls += 1;
    const toolCallId = `call-${calls}`;
    await texts.called({ toolCallId, toolName, input: { path, content: "new" } }, cwd, isWanted);
    return toolCallId;
  };
  return { texts, sent, called };
}

/** What is reported for a call of `write` with this path. */
async function reported(path: unknown) {
  const { sent, called } = reader();
  await called(path);
  return sent[0];
}

test.for([
  ["a text", "a\r\nb"],
  ["an empty file", ""],
  ["a byte order mark", "\ufeffa"],
  ["as much as is read", "x".repeat(mebibyte)],
] as const)("%s is reported as it is", async ([, text]) => {
  const path = join(cwd, "file.txt");
  writeFileSync(path, text);
  expect(await reported("file.txt")).toEqual({ kind: "formerText", toolCallId: "call-1", path, text });
});

test("a missing file is reported as null, also behind a link to nothing", async () => {
  symlinkSync("nothing", join(cwd, "dangling"));
  for (const name of ["missing", "new/deep/missing", "dangling"])
    expect(await reported(name)).toMatchObject({ path: join(cwd, name), text: null });
});

test("nothing is reported of what is not text, too large, not a file, or cannot be read, and nothing waits", async () => {
  const at = (name: string) => join(cwd, name);
  writeFileSync(at("large"), "x".repeat(mebibyte + 1));
  writeFileSync(at("invalid"), Buffer.from([0x61, 0xff]));
  writeFileSync(at("binary"), "a\0b");
  mkdirSync(at("directory"));
  execFileSync("mkfifo", [at("fifo")]);
  symlinkSync("fifo", at("link"));
  symlinkSync("loop", at("loop"));
  for (const path of ["large", "invalid", "binary", "directory", "fifo", "link", "loop", "binary/below"])
    expect(await reported(path)).toBeUndefined();
  for (const path of [
    "/dev/zero",
    "/dev/null",
    "/dev/tty",
    "/proc/self/mem",
    1,
    null,
    "a\0b",
    "file://[",
    "x".repeat(5_000),
  ])
    expect(await reported(path)).toBeUndefined();
  // It has no size, and a text.
  expect(await reported("/proc/self/status")).toMatchObject({ text: expect.stringContaining("Name:") });
});

test("a FIFO is not opened", async () => {
  const path = join(cwd, "waiting");
  execFileSync("mkfifo", [path]);
  let isOpened = false;
  const writing = open(path, "w").then(async (file) => {
    isOpened = true;
    await file.close();
  });
  expect(await reported("waiting")).toBeUndefined();
  expect(isOpened).toBe(false);
  await (await open(path, "r")).close();
  await writing;
});

test("a path is resolved as pi's own tool does", async () => {
  for (const [given, path] of [
    ["a/../b", join(cwd, "b")],
    ["@b", join(cwd, "b")],
    ["b\u00a0c", join(cwd, "b c")],
    ["~", homedir()],
    ["~/no-such-file", join(homedir(), "no-such-file")],
    ["~x", join(cwd, "~x")],
    [`file://${cwd}/b%20c`, join(cwd, "b c")],
    [join(cwd, "b"), join(cwd, "b")],
  ] as const) {
    const { texts, sent, called } = reader();
    // Of one file only the first is reported: so an equal path is known.
    await called(given, "edit");
    await called(path);
    expect(sent).toEqual([]);
    texts.settled();
    await called(path);
    if (given !== "~") expect(sent).toMatchObject([{ path }]);
  }
});

test("only write is reported, only where it is wanted, and only what no other call in progress changes", async () => {
  writeFileSync(join(cwd, "one"), "1");
  const { texts, sent, called } = reader();
  await called("one", "read");
  const edit = await called("one", "edit");
  await called("one");
  expect(sent).toEqual([]);
  texts.settled();
  const first = await called("one");
  await called("./one");
  expect(sent).toMatchObject([{ toolCallId: first, text: "1" }]);
  texts.settled();
  const unwanted = await called("one", "write", false);
  await called("one");
  texts.ended(unwanted);
  texts.ended(edit);
  expect(sent).toHaveLength(1);
});
