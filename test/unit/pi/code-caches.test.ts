import { chmodSync, chownSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { codeCaches } from "../../../server/pi/code-caches.ts";

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "caches-")));
});
afterEach(() => rmSync(root, { recursive: true }));

const nothing = { NODE_DISABLE_COMPILE_CACHE: "1", JITI_FS_CACHE: "false" };

test("compiled code is kept in a private directory of the user, which is created again when it was deleted", () => {
  for (const env of [{ XDG_CACHE_HOME: join(root, ".cache"), HOME: "/none" }, { HOME: root }]) {
    const { directory, env: given } = codeCaches(env);
    expect(directory).toBe(join(root, ".cache", "pi-rpcd", "pi"));
    expect(statSync(directory as string).mode & 0o777).toBe(0o700);
    expect(given).toMatchObject({ TMPDIR: directory, NODE_COMPILE_CACHE: join(directory as string, "node") });
    rmSync(join(root, ".cache"), { recursive: true });
  }
});

test("a directory that others can read is made private; one that they can write to is not used", () => {
  const directory = join(root, "pi-rpcd", "pi");
  mkdirSync(directory, { recursive: true });
  chmodSync(directory, 0o755);
  expect(codeCaches({ XDG_CACHE_HOME: root }).directory).toBe(directory);
  expect(statSync(directory).mode & 0o777).toBe(0o700);
  chmodSync(directory, 0o777);
  expect(codeCaches({ XDG_CACHE_HOME: root })).toEqual({
    directory: undefined,
    env: nothing,
    problem: `other users can write to ${directory}: delete it`,
  });
});

test("the mode of a directory reached through another user's link is not changed", () => {
  const [shared, own] = [join(root, "shared"), join(root, "own")];
  mkdirSync(join(own, "pi"), { recursive: true });
  mkdirSync(shared);
  chmodSync(own, 0o777);
  chmodSync(join(own, "pi"), 0o755);
  symlinkSync(own, join(shared, "pi-rpcd"));
  expect(codeCaches({ XDG_CACHE_HOME: shared }).directory).toBeUndefined();
  expect(statSync(join(own, "pi")).mode & 0o777).toBe(0o755);
});

test("no code is cached where others could replace the directory", () => {
  const shared = join(root, "shared");
  mkdirSync(shared);
  for (const [mode, isSafe] of [
    [0o777, false],
    [0o757, false],
    [0o1777, true],
    [0o755, true],
  ] as const) {
    chmodSync(shared, mode);
    expect(codeCaches({ HOME: shared }).directory !== undefined, mode.toString(8)).toBe(isSafe);
  }
  chmodSync(shared, 0o777);
  expect(codeCaches({ HOME: shared })).toMatchObject({ env: nothing, problem: `other users can write to ${shared}` });
  // A link leads there.
  symlinkSync(shared, join(root, "link"));
  expect(codeCaches({ HOME: join(root, "link") }).directory).toBeUndefined();
  for (const env of [{}, { HOME: "relative" }, { HOME: "/dev/null" }])
    expect(codeCaches(env)).toMatchObject({ env: nothing });
});

test("a directory that another user created first is not used", ({ skip }) => {
  skip(process.getuid?.() !== 0, "only root may give a file to another user");
  const [parent, own] = [join(root, "theirs"), join(root, "own")];
  for (const home of [parent, own]) mkdirSync(join(home, ".cache", "pi-rpcd", "pi"), { recursive: true });
  chownSync(join(parent, ".cache"), 65_534, 65_534);
  chownSync(join(own, ".cache", "pi-rpcd", "pi"), 65_534, 65_534);
  for (const home of [parent, own]) {
    expect(codeCaches({ HOME: home })).toMatchObject({
      env: nothing,
      problem: expect.stringContaining("another user"),
    });
  }
});
