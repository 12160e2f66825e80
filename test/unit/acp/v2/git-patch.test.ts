import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { filePatch, patchFrom } from "../../../../acp/v2/git-patch.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "pi-rpcd-patch-"));
});
afterAll(() => rmSync(directory, { recursive: true }));

/** The file after git has applied the patch to its former text; null: there was no file. */
function applied(path: string, oldText: string | null, patch: string): string {
  rmSync(path, { force: true });
  if (oldText !== null) writeFileSync(path, oldText);
  const { stderr, status } = spawnSync("git", ["apply", "--unsafe-paths", "--whitespace=nowarn", "-p0", "-"], {
    input: patch,
    cwd: directory,
  });
  expect([status, stderr.toString()]).toEqual([0, ""]);
  return readFileSync(path, "utf8");
}

describe("a patch", () => {
  const words = fc.array(fc.constantFrom("a", "b", "\n", "c\r\n"), { maxLength: 12 }).map((parts) => parts.join(""));

  test("gives git the new text of any change", () => {
    const path = join(directory, "file.txt");
    fc.assert(
      fc.property(words, words, (oldText, newText) => {
        const patch = filePatch(path, oldText, newText);
        if (patch === undefined) expect(oldText).toBe(newText);
        else expect(applied(path, oldText, patch)).toBe(newText);
      }),
      { numRuns: 60 },
    );
  });

  test.each(["plain.txt", "with spaces.txt", 'quo"te\\.txt', "tab\t.txt", "über 日本.txt"])(
    "names %j as git does",
    (name) => {
      const path = join(directory, name);
      expect(applied(path, "one\n", filePatch(path, "one\n", "two\n") ?? "")).toBe("two\n");
      expect(applied(path, null, filePatch(path, null, "new") ?? "")).toBe("new");
    },
  );

  test("has the lines around a change, and no others", () => {
    const lines = Array.from({ length: 20 }, (_, index) => `${index}\n`);
    const patch = filePatch("/f", lines.join(""), lines.with(9, "nine\n").join("")) ?? "";
    expect(patch).toBe("diff --git /f /f\n--- /f\n+++ /f\n@@ -7,7 +7,7 @@\n 6\n 7\n 8\n-9\n+nine\n 10\n 11\n 12\n");
  });

  test("ends the names of its file with a tab if there is a space in them, as git does", () => {
    expect(filePatch("/a b", "one\n", "two\n")).toBe(
      "diff --git /a b /a b\n--- /a b\t\n+++ /a b\t\n@@ -1,1 +1,1 @@\n-one\n+two\n",
    );
  });

  test("takes the hunks of a unified diff, and nothing that follows them", () => {
    const unified = "--- a\n+++ a\n@@ -1 +1 @@\n-one\n+two\n";
    expect(patchFrom(unified, "/dir/a")).toBe(
      "diff --git /dir/a /dir/a\n--- /dir/a\n+++ /dir/a\n@@ -1 +1 @@\n-one\n+two\n",
    );
    expect(patchFrom(`${unified}diff --git /etc/x /etc/x\n@@ -1 +1 @@\n-x\n+y\n`, "/dir/a")).toBe(
      patchFrom(unified, "/dir/a"),
    );
    expect(patchFrom("no diff", "/dir/a")).toBeUndefined();
  });
});
