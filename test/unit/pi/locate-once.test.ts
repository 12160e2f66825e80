import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { locatePi } from "../../../server/pi/locate.ts";
import { startTimeOf } from "../../../server/pi/processes.ts";
import { patience } from "../../helpers/patience.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "locate-"));
});
afterEach(() => rmSync(root, { recursive: true }));

test("all callers share one version check of a program, until the program changes", async () => {
  const path = join(root, "pi");
  const asked = join(root, "asked");
  const says = (version: string) =>
    writeFileSync(path, `#!/bin/sh\necho "$1" >> '${asked}'\necho ${version}\n`, { mode: 0o755 });
  const found = async () => (await locatePi({ option: path, env: {} })).version;
  says("1.5.2");
  expect(await Promise.all([found(), found(), found()])).toEqual(["1.5.2", "1.5.2", "1.5.2"]);
  expect(await found()).toBe("1.5.2");
  expect(readFileSync(asked, "utf8")).toBe("--version\n");
  says("1.5.10");
  expect(await found()).toBe("1.5.10");
  expect(readFileSync(asked, "utf8")).toBe("--version\n--version\n");
  says("none at all");
  await expect(found()).rejects.toMatchObject({ kind: "pi_not_found" });
});

test("a program that could not report its version is asked again", async () => {
  const path = join(root, "pi");
  const ready = join(root, "ready");
  writeFileSync(path, `#!/bin/sh\ntest -e '${ready}' && echo 1.5.2\n`, { mode: 0o755 });
  const found = () => locatePi({ option: path, env: {} });
  await expect(found()).rejects.toMatchObject({ kind: "pi_not_found" });
  writeFileSync(ready, "");
  expect(await found()).toMatchObject({ version: "1.5.2" });
});

test("a version check stores no code where others can write, and leaves no process", async () => {
  const path = join(root, "pi");
  const facts = join(root, "facts");
  vi.stubEnv("XDG_CACHE_HOME", root);
  onTestFinished(() => void vi.unstubAllEnvs());
  const shown = `"$TMPDIR|$NODE_COMPILE_CACHE|$!"`;
  writeFileSync(path, `#!/bin/sh\n(sleep 600 >/dev/null 2>&1 & echo ${shown} > '${facts}')\necho 1.5.2\n`, {
    mode: 0o755,
  });
  expect(await locatePi({ option: path, env: {} })).toMatchObject({ version: "1.5.2" });
  const [temporary, compiled, left] = readFileSync(facts, "utf8").trim().split("|") as [string, string, string];
  const cache = join(realpathSync(root), "pi-rpcd", "pi");
  expect([temporary, compiled]).toEqual([cache, join(cache, "node")]);
  // A zombie keeps its process id, but has ended.
  await vi.waitFor(async () => expect(await startTimeOf(Number(left))).toBeUndefined(), patience);
});
