import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { CommandSpec } from "../../../cli/command-spec.ts";
import { commands } from "../../../cli/commands.ts";
import { bashScript } from "../../../cli/completion/bash.ts";
import { fishScript } from "../../../cli/completion/fish.ts";
import { zshScript } from "../../../cli/completion/zsh.ts";

const table: Readonly<Record<string, CommandSpec>> = commands;
const folder = mkdtempSync(join(tmpdir(), "completion-"));
writeFileSync(join(folder, "script"), bashScript(table));
mkdirSync(join(folder, "some where"));
writeFileSync(join(folder, "some file"), "");
// What a running daemon's list would be, with a label that passes for an id; and ids as no daemon would give them.
const forged = ["$(>forged)", "`touch forged`", "0199-aa;touch forged", "-rf", "0199 *"];
const program = join(folder, "pi-rpcd");
const documents = forged.map((id) => `{"sessions":[{"sessionId":"0199-aa","labels":{"sessionId":"${id}"}}]}`);
writeFileSync(join(folder, "documents"), `${documents.join("\n")}\n`);
writeFileSync(join(folder, "ids"), `0199-aa\n${forged.join("\n")}\n0199-bb\n`);
writeFileSync(program, `#!/bin/sh\ncase "$*" in *--ids*) exec cat ids ;; *) exec cat documents ;; esac\n`);
chmodSync(program, 0o755);
afterAll(() => rmSync(folder, { recursive: true }));

/** What bash itself offers behind a line, whose last word is being typed. */
function offered(...words: readonly string[]): readonly string[] {
  const before = readdirSync(folder);
  const script = `source ./script
COMP_WORDS=("$@"); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
_pi_rpcd
printf '%s\\n' "\${COMPREPLY[@]}"`;
  const output = execFileSync("bash", ["--norc", "-eu", "-c", script, "bash", "pi-rpcd", ...words], {
    cwd: folder,
    encoding: "utf8",
    env: { PATH: `${folder}${delimiter}${process.env["PATH"]}` },
  });
  expect(readdirSync(folder)).toEqual(before);
  return output.split("\n").filter((line) => line !== "");
}

describe("bash", () => {
  test("completes every command", () => {
    expect(offered("")).toEqual([...Object.keys(commands), "--help", "--version"]);
    expect(offered("de")).toEqual(["deliveries", "delivery", "demo"]);
  });

  test("completes the options of the command, with their short forms", () => {
    expect(offered("logs", "--")).toEqual(["--follow", "--lines", "--file", "--state-dir", "--json", "--help"]);
    expect(offered("logs", "-")).toEqual(expect.arrayContaining(["-f", "-n", "--follow"]));
    expect(offered("rm", "x", "--y")).toEqual(["--yes"]);
  });

  test("completes values: words, files, directories, and nothing where anything may stand", () => {
    expect(offered("new", "--thinking", "m")).toEqual(["minimal", "medium", "max"]);
    expect(offered("new", "--cwd", "some")).toEqual(["some where"]);
    expect(offered("start", "--config", "some")).toEqual(expect.arrayContaining(["some file", "some where"]));
    expect(offered("new", "--name", "")).toEqual([]);
  });

  test("completes arguments in their places, past options and their values", () => {
    expect(offered("completion", "")).toEqual(["bash", "zsh", "fish"]);
    expect(offered("attach", "0199-b")).toEqual(["0199-bb"]);
    expect(offered("attach", "--past", "5", "--view-only", "")).toEqual(["last", "0199-aa", "0199-bb"]);
    expect(offered("attach", "last", "")).toEqual([]);
    expect(offered("help", "sta")).toEqual(["start", "status"]);
    expect(offered("context", "e")).toEqual(["export"]);
    expect(offered("context", "import", "")).toEqual(expect.arrayContaining(["last", "0199-aa", "some file"]));
    expect(offered("context", "import", "some")).toEqual(["some file", "some where"]);
  });

  test("runs and offers nothing of what a session is labelled, nor what is no id", () => {
    expect(offered("attach", "")).toEqual(["last", "0199-aa", "0199-bb"]);
    expect(offered("attach", "0199-aa")).toEqual(["0199-aa"]);
    for (const typed of ["$(touch forged)", "*", "[0", "0199-a\\"]) expect(offered("attach", typed)).toEqual([]);
  });
});

test("all shells ask for the ids alone, and take nothing else", () => {
  for (const script of [bashScript(table), zshScript(table), fishScript(table)]) {
    expect(script).toContain("pi-rpcd ls --ids 2>/dev/null | grep -E '^[0-9A-Za-z][0-9A-Za-z._-]{0,127}$'");
    expect(script).not.toContain("--json 2");
  }
});

test.each([
  ["zsh", zshScript(table)],
  ["fish", fishScript(table)],
])("the script for %s has every command and every option", (shell, script) => {
  const form = shell === "zsh" ? (option: string) => `'--${option}[` : (option: string) => ` -l ${option} `;
  for (const [name, { options }] of Object.entries(table)) {
    expect(script).toContain(shell === "zsh" ? `\n    ${name})\n` : ` -a ${name} -d '`);
    for (const option of Object.keys(options)) expect(script).toContain(form(option));
  }
});
