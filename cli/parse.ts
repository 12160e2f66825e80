import { nearest } from "../protocol/configuration/nearest.ts";
import type { CommandSpec, OptionSpec } from "./command-spec.ts";
import { commands } from "./commands.ts";
import { missingArgument, UsageError } from "./errors.ts";
import type { CommandName } from "./invocation.ts";
import { parseArgs } from "./node-builtins.ts";

export type ParsedLine =
  | { readonly kind: "version" }
  /** The hidden command of the completion scripts; `words` is the command line up to the cursor. */
  | { readonly kind: "complete"; readonly words: readonly string[] }
  /** `command` undefined: the overview. */
  | { readonly kind: "help"; readonly command: CommandName | undefined; readonly json: boolean }
  | {
      readonly kind: "command";
      readonly name: Exclude<CommandName, "help">;
      readonly options: Readonly<Record<string, string | boolean | undefined>>;
      readonly arguments: readonly string[];
    };

/** Parses a command line. Throws a {@link UsageError}. */
export function parseLine(args: readonly string[]): ParsedLine {
  const [first, ...rest] = args;
  if (first === undefined) return { kind: "help", command: undefined, json: false };
  if (first === "--version" || first === "-V") return { kind: "version" };
  if (first === "__complete") return { kind: "complete", words: rest };
  if (first === "--help" || first === "-h") return parseLine(["help", ...rest]);
  if (first.startsWith("-")) throw new UsageError(`Unknown command ${first}: the command comes before its options.`);
  const name = commandName(first);
  const { values, positionals } = parseRest(name, rest);
  const json = values["json"] === true;
  if (values["help"] === true) return { kind: "help", command: name, json };
  checkChoices(name, values);
  checkArguments(name, positionals);
  if (name !== "help") return { kind: "command", name, options: values, arguments: positionals };
  return { kind: "help", command: positionals[0] === undefined ? undefined : commandName(positionals[0]), json };
}

/** Whether a command line, perhaps an invalid one, asks for JSON. */
export function wantsJson(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return (end === -1 ? args : args.slice(0, end)).includes("--json");
}

function commandName(word: string): CommandName {
  if (Object.hasOwn(commands, word)) return word as CommandName;
  throw new UsageError(`Unknown command "${word}".${suggestion(word, Object.keys(commands))}`);
}

/** Names the most similar of the known words, if one is similar enough to be a typing mistake. */
function suggestion(word: string, known: readonly string[], mark = ""): string {
  const near = nearest(word, known, word.length < 5 ? 1 : 2);
  return near === undefined ? "" : ` Did you mean ${mark}${near}?`;
}

function parseRest(
  name: CommandName,
  args: readonly string[],
): {
  readonly values: Readonly<Record<string, string | boolean | undefined>>;
  readonly positionals: readonly string[];
} {
  const specs: CommandSpec["options"] = commands[name].options;
  const options = Object.fromEntries(
    Object.entries(specs).map(([option, { type, short }]) => [option, { type, ...(short !== undefined && { short }) }]),
  );
  const end = ownWords(commands[name], args);
  try {
    const { values, positionals } = parseArgs({
      args: args.slice(0, end),
      options,
      allowPositionals: true,
      strict: true,
    });
    const others = args.slice(args[end] === "--" ? end + 1 : end);
    return { values, positionals: [...positionals, ...others] };
  } catch (error) {
    throw new UsageError(parseMessage(name, error), name);
  }
}

/** The number of words before those of another program. */
function ownWords({ arguments: specs, options }: CommandSpec, args: readonly string[]): number {
  if (specs.at(-1)?.passed !== true) return args.length;
  const named = Object.entries(options);
  let place = 0;
  for (let word = args[0]; word !== undefined; word = args[place]) {
    const [given] = word.split("=");
    const [, option] = named.find(([name, { short }]) => given === `--${name}` || word === `-${short}`) ?? [];
    if (option === undefined) break;
    place += option.type === "string" && given === word ? 2 : 1;
  }
  return Math.min(place, args.length);
}

function parseMessage(name: CommandName, error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const unknown = /^Unknown option '([^']*)'/.exec(message)?.[1];
  if (unknown === undefined) return message;
  const { arguments: specs, options }: CommandSpec = commands[name];
  const near = suggestion(unknown.replace(/^--?/, ""), Object.keys(options), "--");
  // Node's advice is correct, but twice as long as necessary.
  const text = specs.at(-1)?.many === true ? " Put a text that begins with - after --." : "";
  return `${name} has no option ${unknown}.${near}${text}`;
}

function checkChoices(name: CommandName, values: Readonly<Record<string, string | boolean | undefined>>): void {
  for (const [option, spec] of Object.entries<OptionSpec>(commands[name].options)) {
    const value = values[option];
    if (spec.choices === undefined || typeof value !== "string" || spec.choices.includes(value)) continue;
    const near = suggestion(value, spec.choices);
    throw new UsageError(`--${option} must be one of ${spec.choices.join(", ")}, not "${value}".${near}`, name);
  }
}

function checkArguments(name: CommandName, given: readonly string[]): void {
  const specs: CommandSpec["arguments"] = commands[name].arguments;
  const missing = specs.find(({ optional }, index) => optional !== true && given[index] === undefined);
  if (missing !== undefined) throw new UsageError(missingArgument(missing.name), name);
  for (const [index, { name: argument, choices, many }] of specs.entries()) {
    const word = given[index];
    // An empty word is usually an unset variable of a script. A text may be empty.
    if (word === "" && many !== true) throw new UsageError(`${argument} is empty.`, name);
    if (choices === undefined || word === undefined || choices.includes(word)) continue;
    const near = suggestion(word, choices);
    throw new UsageError(`${argument} must be one of ${choices.join(", ")}, not "${word}".${near}`, name);
  }
  if (specs.at(-1)?.many === true || given.length <= specs.length) return;
  const extra = given[specs.length];
  const advice = name === "new" ? ` A session's name is an option: --name ${extra}` : "";
  throw new UsageError(`${name} has too many arguments: "${extra}".${advice}`, name);
}
