import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { CommandSpec } from "../../../cli/command-spec.ts";
import { commands } from "../../../cli/commands.ts";
import { exitCodeMeanings, exitCodes } from "../../../cli/exit-codes.ts";
import { commandHelp, helpDocument, overview } from "../../../cli/help.ts";
import type { CommandName } from "../../../cli/invocation.ts";
import { loaders } from "../../../cli/loaders.ts";
import { parseLine } from "../../../cli/parse.ts";

const rows = Object.entries<CommandSpec>(commands) as readonly [CommandName, CommandSpec][];
const runnable = rows.filter(([name]) => name !== "help");
const folder = join(import.meta.dirname, "..", "..", "..", "cli");
/** Options that a command passes on whole, with the fields that other files read. */
const shared = new Set(["state-dir", "no-start", "json", "help"]);

/** The file that the loader of a command imports. */
function fileOf(name: string): string {
  const source = readFileSync(join(folder, "loaders.ts"), "utf8");
  const [, file] = new RegExp(`^  "?${name}"?: async \\(\\) => \\(await import\\("\\./(.*?)"`, "m").exec(source) ?? [];
  if (file === undefined) throw new Error(`${name} has no loader`);
  return file;
}

function argumentsOf({ arguments: specs }: CommandSpec): readonly string[] {
  return specs.map(({ name, choices }) => choices?.[0] ?? name.toLowerCase());
}

describe("the table of commands", () => {
  test.each(rows)("%s takes --json, --help and --state-dir", (_, { options }) => {
    expect(Object.keys(options)).toEqual(expect.arrayContaining(["json", "help", "state-dir"]));
  });

  test.each(runnable)("%s can be loaded", async (name) => {
    await expect(loaders[name as keyof typeof loaders]()).resolves.toBeTypeOf("function");
  });

  test.each(runnable)("each option of %s can be given, with each of its values", (name, spec) => {
    for (const [option, { type, choices = ["1"] }] of Object.entries(spec.options)) {
      if (option === "help") continue;
      const values = type === "boolean" ? [true] : choices;
      for (const value of values) {
        const given = value === true ? [`--${option}`] : [`--${option}`, String(value)];
        expect(parseLine([name, ...given, ...argumentsOf(spec)])).toMatchObject({ options: { [option]: value } });
      }
    }
  });

  test.each(runnable)("each option of %s is read by it", (name, { options }) => {
    const source = readFileSync(join(folder, fileOf(name)), "utf8");
    const own = Object.keys(options).filter((option) => !shared.has(option));
    const unread = own.filter((option) => {
      const reads = [`options.${option}`, `options["${option}"]`, `"${option}": `, `"${option}" `];
      const destructured = new RegExp(
        `\\{[^}]*\\b${option}\\b[^}]*\\}[^=;]*= (?:invocation\\.)?options|\\{[^}]*\\b${option}\\b[^}]*\\}: \\w+\\["options"\\]`,
      );
      return !reads.some((read) => source.includes(read)) && !destructured.test(source);
    });
    expect(unread).toEqual([]);
  });

  test.each(rows)("the help of %s names every option, argument and exit code", (name, spec) => {
    const help = commandHelp(name);
    for (const option of Object.keys(spec.options)) expect(help).toContain(`--${option}`);
    for (const argument of spec.arguments) expect(help).toContain(argument.name);
    for (const code of spec.exitCodes) expect(help).toMatch(new RegExp(`^ +${code} `, "m"));
    expect(help).toMatch(/^Usage: pi-rpcd /);
  });

  test.each(rows)("no line of the help of %s is longer than 100 characters", (name) => {
    expect(
      commandHelp(name)
        .split("\n")
        .filter((line) => line.length > 100),
    ).toEqual([]);
  });

  test("the overview names every command and fits on a screen", () => {
    const text = overview("1.2.3");
    for (const [name, { summary }] of rows) {
      expect(text).toContain(`  ${name} `);
      expect(text).toContain(summary.split(" ").slice(0, 4).join(" "));
    }
    expect(text).toContain("Usage");
    expect(text).toContain("1.2.3");
    expect(text.split("\n").filter((line) => line.length > 100)).toEqual([]);
    expect(text.split("\n").length).toBeLessThan(60);
  });

  test.each(runnable)("the examples of %s are valid command lines", (name, { examples }) => {
    expect(examples).not.toHaveLength(0);
    for (const example of examples) {
      const [, line = ""] = /pi-rpcd (.*)$/.exec(example) ?? [];
      const words = line.match(/"[^"]*"|\S+/g)?.map((word) => word.replaceAll('"', "")) ?? [];
      expect(parseLine(words)).toMatchObject({ kind: "command", name });
    }
  });

  test("programs get the same table", () => {
    const document = helpDocument(undefined) as { readonly commands: readonly { readonly name: string }[] };
    expect(document.commands.map(({ name }) => name)).toEqual(Object.keys(commands));
    expect(helpDocument("push")).toMatchObject({ name: "push", usage: "pi-rpcd push [OPTIONS] SESSION [TEXT...]" });
  });

  test("every exit code has a meaning", () => {
    expect(Object.keys(exitCodeMeanings).map(Number).sort()).toEqual(Object.values(exitCodes).sort());
  });
});
