import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { completion } from "../../../../cli/attach/completion.ts";

function project(files: readonly string[]): string {
  const cwd = mkdtempSync(join(tmpdir(), "completion-"));
  onTestFinished(() => rmSync(cwd, { recursive: true }));
  for (const file of files) {
    mkdirSync(join(cwd, file, ".."), { recursive: true });
    writeFileSync(join(cwd, file), "");
  }
  return cwd;
}

async function complete(line: string, cwd: string, commands: { name: string; description?: string }[] = []) {
  const provider = completion({ commands, cwd, env: { PATH: "/nonexistent" } });
  const { signal } = new AbortController();
  const found = await provider.getSuggestions([line], 0, line.length, { signal });
  const [first] = found?.items ?? [];
  const applied =
    found === null || first === undefined
      ? undefined
      : provider.applyCompletion([line], 0, line.length, first, found.prefix).lines[0];
  return { values: found?.items.map(({ value }) => value) ?? [], applied };
}

test("@ completes files of the session's directory without the program fd, at any depth", async () => {
  const cwd = project([
    "README.md",
    "src/deep/parser.ts",
    "src/with space.ts",
    "node_modules/x/parser.js",
    ".git/parser",
  ]);
  expect(await complete("look at @parser", cwd)).toEqual({
    values: ["@src/deep/parser.ts"],
    applied: "look at @src/deep/parser.ts ",
  });
  expect((await complete("@src/deep/", cwd)).values).toEqual(["@src/deep/parser.ts"]);
  expect((await complete('@"src/with', cwd)).applied).toBe('@"src/with space.ts" ');
  expect((await complete("mail a@parser", cwd)).values).toEqual([]);
  expect((await complete("@parser", join(cwd, "nowhere"))).values).toEqual([]);
});

test("names that could control the terminal are not offered", async () => {
  const cwd = project(["plain.txt", "plain\u001b[2J.txt", "plain\u202e.txt", "plain\n.txt"]);
  expect((await complete("@plain", cwd)).values).toEqual(["@plain.txt"]);
  expect(await complete("/rev", cwd, [{ name: "review", description: "looks\u001b[2J" }])).toEqual({
    values: ["review"],
    applied: "/review ",
  });
});
