import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { commands } from "../../../cli/commands.ts";
import { complete } from "../../../cli/complete.ts";
import { completion } from "../../../cli/completion.ts";
import { memoryOutput } from "./memory-output.ts";

// Ids of a running daemon, and ids and names that no daemon creates.
const forged = ["$(>forged)", "`touch forged`", "0199-aa;touch forged", "-rf", "0199 *"];
const sessions = ["0199-aa", ...forged, "0199-bb"].map((sessionId) => ({ sessionId, cwd: "/project" }));

/** The candidates and markers for a line, without descriptions. */
async function offered(...words: readonly string[]): Promise<readonly string[]> {
  const lines = (await complete(words, async () => sessions)).split("\n").slice(0, -1);
  return lines.map((line) => line.split("\t")[0] ?? "");
}

describe("the command line", () => {
  test("completes every command", async () => {
    expect(await offered("")).toEqual([...Object.keys(commands), "--help", "--version"]);
    expect(await offered("de")).toEqual(["deliveries", "delivery", "demo"]);
    expect(await offered("toString", "")).toEqual([]);
  });

  test("describes commands and options with one sentence", async () => {
    expect(await complete(["dem"], async () => [])).toBe(
      "demo\tRuns an end-to-end demo on real pi with a scripted model (no key, no network)\n",
    );
    expect(await complete(["rm", "x", "--y"], async () => [])).toBe(
      "--yes\tRequired, because the transcript is deleted permanently\n",
    );
  });

  test("completes the options of the command, including their short forms", async () => {
    const expected = ["--follow", "-f", "--lines", "-n", "--file", "--state-dir", "--json", "--help", "-h"];
    expect(await offered("logs", "-")).toEqual(expected);
    expect(await offered("logs", "--")).toEqual(expected.filter((option) => option.startsWith("--")));
    expect(await offered("rm", "x", "--y")).toEqual(["--yes"]);
  });

  test("completes values: words, files, directories, and nothing for free text", async () => {
    expect(await offered("new", "--thinking", "m")).toEqual(["minimal", "medium", "max"]);
    expect(await offered("new", "--cwd", "some")).toEqual([":directories"]);
    expect(await offered("start", "--config", "some")).toEqual([":files"]);
    expect(await offered("new", "--name", "")).toEqual([]);
    expect(await offered("new", "--name", "--thinking", "m")).toEqual([]);
  });

  test("completes arguments at their positions, after options and their values", async () => {
    expect(await offered("completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(await offered("attach", "0199-b")).toEqual(["0199-bb"]);
    expect(await offered("attach", "--past", "5", "--view-only", "")).toEqual(["last", "0199-aa", "0199-bb"]);
    expect(await offered("attach", "last", "")).toEqual([]);
    expect(await offered("help", "sta")).toEqual(["start", "status"]);
    expect(await offered("context", "e")).toEqual(["export"]);
    expect(await offered("queue", "")).toEqual(["show", "clear"]);
    expect(await offered("model", "set", "0199-a")).toEqual(["0199-aa"]);
    expect(await offered("context", "import", "")).toEqual(["last", "0199-aa", "0199-bb", ":files"]);
  });

  test("offers the end of a UUID and the name, with name and directory, and the whole id if its beginning is typed", async () => {
    const sessionId = "019ab2c4-7c1e-7f6b-8a55-0d6f2f1b9c11";
    const named = [
      { sessionId, name: "review", cwd: "/a\tb\nc" },
      { sessionId: "019ab2c4-7c1e-7f6b-8a55-0d6f2f1be55e", name: "$(touch forged)\u001b[2J", cwd: "/d" },
    ];
    const about = "review, /a b | c";
    expect(await complete(["abort", ""], async () => named)).toBe(
      `last\tThe newest session\n2f1b9c11\t${about}\nreview\t${about}\n2f1be55e\t$(touch forged)[2J, /d\n`,
    );
    expect(await complete(["abort", "019ab2c4-7c1e-7f6b-8a55-0d6f2f1b9"], async () => named)).toBe(
      `${sessionId}\t${about}\n`,
    );
  });

  test("offers only ids that a shell cannot interpret", async () => {
    expect(await offered("attach", "")).toEqual(["last", "0199-aa", "0199-bb"]);
    for (const typed of ["$(touch forged)", "*", "[0", "0199-a\\"]) expect(await offered("attach", typed)).toEqual([]);
  });
});

test.each(["bash", "zsh", "fish"])("the script for %s asks the program, and contains no commands", async (shell) => {
  const script = await scriptFor(shell);
  expect(script).toContain("pi-rpcd __complete ");
  expect(script).not.toMatch(/deliveries|--state-dir/);
});

describe("bash", () => {
  const folder = mkdtempSync(join(tmpdir(), "completion-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "some where"));
  writeFileSync(join(folder, "some file"), "");

  /** The candidates that bash itself offers if the program prints these lines. */
  async function inBash(lines: readonly string[], ...words: readonly string[]): Promise<readonly string[]> {
    writeFileSync(join(folder, "script"), await scriptFor("bash"));
    writeFileSync(join(folder, "lines"), lines.map((line) => `${line}\n`).join(""));
    const program = join(folder, "pi-rpcd");
    writeFileSync(
      program,
      '#!/bin/sh\n[ "$1" = __complete ] && shift && printf "%s\\n" "$@" > words && exec cat lines\n',
    );
    chmodSync(program, 0o755);
    const script = `source ./script
COMP_WORDS=("$@"); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
_pi_rpcd
printf '%s\\n' "\${COMPREPLY[@]}"`;
    const output = execFileSync("bash", ["--norc", "-eu", "-c", script, "bash", "pi-rpcd", ...words], {
      cwd: folder,
      encoding: "utf8",
      env: { PATH: `${folder}${delimiter}${process.env["PATH"]}` },
    });
    expect(readdirSync(folder).sort()).toEqual(["lines", "pi-rpcd", "script", "some file", "some where", "words"]);
    return output.split("\n").filter((line) => line !== "");
  }

  test("offers the program's candidates without their descriptions", async () => {
    expect(await inBash(["start\tStarts it.", "status\tShows it."], "sta")).toEqual(["start", "status"]);
    expect(await inBash([], "new", "--name", "")).toEqual([]);
  });

  test("adds paths, in addition to candidates", async () => {
    expect(await inBash([":files"], "start", "--config", "some")).toEqual(
      expect.arrayContaining(["some file", "some where"]),
    );
    expect(await inBash([":directories"], "new", "--cwd", "some")).toEqual(["some where"]);
    expect(await inBash(["somewhere", ":files"], "context", "import", "some")).toEqual(
      expect.arrayContaining(["somewhere", "some file", "some where"]),
    );
  });

  test("passes words and candidates on without evaluating them", async () => {
    for (const typed of ["$(>forged)", "`touch forged`", "*", "a b"]) {
      expect(await inBash([...forged], "attach", typed)).toEqual(forged);
    }
  });
});

async function scriptFor(shell: string): Promise<string> {
  const { output, stdout } = memoryOutput();
  await completion({ output, arguments: [shell], options: {}, env: {}, signal: new AbortController().signal });
  return stdout();
}
