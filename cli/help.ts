import { type Command, commonOptions, type OptionRow } from "./command.ts";
import { commands } from "./commands.ts";
import { exitCodeMeanings, exitCodes } from "./exit-codes.ts";

/** The help of the whole. */
export async function overview(): Promise<string> {
  const rows = await Promise.all(Object.values(commands).map((load) => load()));
  return [
    "pi-rpcd: sessions of the pi coding agent for many clients, and a receipt when the model really got your message",
    "",
    "Usage: pi-rpcd COMMAND [ARGUMENTS] [OPTIONS]",
    "",
    "Commands:",
    ...table(rows.map(({ name, summary }) => [name, summary])),
    "",
    "Options of every command:",
    ...optionLines(commonOptions),
    ...table([["--version", "show the version (without a command)"]]),
    "",
    "Exit codes:",
    ...exitCodeLines(),
    "",
    "More: pi-rpcd COMMAND --help",
    "",
  ].join("\n");
}

/** The help of one command. */
export function helpOf(command: Command): string {
  return [
    `pi-rpcd ${command.name}: ${command.summary}`,
    "",
    `Usage: pi-rpcd ${[command.name, command.arguments, "[OPTIONS]"].filter((part) => part !== "").join(" ")}`,
    "",
    "Options:",
    ...optionLines({ ...command.options, ...commonOptions }),
    "",
    "Examples:",
    ...command.examples.map((example) => `  ${example}`),
    "",
    "Exit codes:",
    ...exitCodeLines(),
    "",
  ].join("\n");
}

function optionLines(options: Readonly<Record<string, OptionRow>>): string[] {
  return table(
    Object.entries(options).map(([name, { short, value, summary, fallback }]) => [
      `${short === undefined ? "" : `-${short}, `}--${name}${value === undefined ? "" : ` ${value}`}`,
      `${summary}${fallback === undefined ? "" : ` (default: ${fallback})`}`,
    ]),
  );
}

function exitCodeLines(): string[] {
  return table(
    (Object.keys(exitCodes) as (keyof typeof exitCodes)[]).map((name) => [String(exitCodes[name]), exitCodeMeanings[name]]),
  );
}

function table(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
