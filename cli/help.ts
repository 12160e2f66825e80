import type { ArgumentSpec, CommandSpec, OptionSpec } from "./command-spec.ts";
import { commands } from "./commands.ts";
import { exitCodeMeanings } from "./exit-codes.ts";
import type { CommandName } from "./invocation.ts";
import { wrap } from "./text.ts";

const width = 100;

/** The text that `pi-rpcd --help` prints. */
export function overview(version: string): string {
  const rows = Object.entries<CommandSpec>(commands).map(([name, { summary }]) => [name, summary] as const);
  return [
    `pi-rpcd ${version}: a daemon for the pi coding agent. Many sessions, many clients, and a receipt when`,
    "the model has received your message.",
    "",
    "Usage: pi-rpcd COMMAND [OPTIONS]",
    "",
    "Commands:",
    ...columns(rows),
    "",
    "Every command has --help (with its exit codes), --json and --state-dir DIR. The first command",
    "that needs the daemon starts it, unless --no-start is given. `pi-rpcd --version` prints the version.",
    "Try: pi-rpcd try",
  ].join("\n");
}

/** The text that `pi-rpcd COMMAND --help` prints. */
export function commandHelp(name: CommandName): string {
  const spec: CommandSpec = commands[name];
  const options = Object.entries(spec.options);
  return [
    `Usage: ${usageOf(name)}`,
    "",
    ...wrap(spec.description === undefined ? spec.summary : `${spec.summary} ${spec.description}`, width),
    ...section("Arguments", columns(spec.arguments.map((argument) => [argument.name, withChoices(argument)]))),
    ...section("Options", columns(options.map(([option, of]) => [optionLabel(option, of), optionText(of)]))),
    ...section(
      "Examples",
      spec.examples.map((example) => `  ${example}`),
    ),
    ...section("Exit codes", columns(spec.exitCodes.map((code) => [String(code), exitCodeMeanings[code]]))),
  ].join("\n");
}

/** The table of commands for programs. */
export function helpDocument(name: CommandName | undefined): unknown {
  const described = (each: CommandName): object => ({ name: each, usage: usageOf(each), ...commands[each] });
  if (name !== undefined) return described(name);
  return { commands: Object.keys(commands).map((each) => described(each as CommandName)), exitCodes: exitCodeMeanings };
}

/** The usage line at the beginning of a command's help. */
export function usageOf(name: CommandName): string {
  const specs: CommandSpec["arguments"] = commands[name].arguments;
  return ["pi-rpcd", name, "[OPTIONS]", ...specs.map(argumentLabel)].join(" ");
}

function argumentLabel({ name, optional, many }: ArgumentSpec): string {
  const label = many === true ? `${name}...` : name;
  return optional === true ? `[${label}]` : label;
}

function optionLabel(option: string, { placeholder, short }: OptionSpec): string {
  const names = short === undefined ? `--${option}` : `-${short}, --${option}`;
  return placeholder === undefined ? names : `${names} ${placeholder}`;
}

function optionText(option: OptionSpec): string {
  return `${withChoices(option)}${option.default === undefined ? "" : ` Default: ${option.default}.`}`;
}

function withChoices({ description, choices }: ArgumentSpec | OptionSpec): string {
  return choices === undefined ? description : `${description} One of ${choices.join(", ")}.`;
}

function section(title: string, lines: readonly string[]): readonly string[] {
  return lines.length === 0 ? [] : ["", `${title}:`, ...lines];
}

function columns(rows: readonly (readonly [label: string, text: string])[]): readonly string[] {
  const labelWidth = Math.max(0, ...rows.map(([label]) => label.length));
  return rows.flatMap(([label, text]) =>
    wrap(text, width - labelWidth - 4).map(
      (line, index) => `  ${(index === 0 ? label : "").padEnd(labelWidth)}  ${line}`,
    ),
  );
}
