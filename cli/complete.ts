import { stateDirectory } from "../client/discovery.ts";
import type { ArgumentSpec, CommandSpec, OptionSpec } from "./command-spec.ts";
import { commands } from "./commands.ts";
import { callDaemon } from "./daemon-call.ts";
import { shortId } from "./format.ts";
import type { SessionChoice } from "./session-argument.ts";
import { oneLine } from "./text.ts";

const table: Readonly<Record<string, CommandSpec>> = commands;

/** A word that can complete the line, and its description. */
type Candidate = readonly [word: string, description?: string];

/** The candidates for a position, and whether the shell adds paths. */
interface Completion {
  readonly candidates?: readonly Candidate[];
  readonly paths?: "files" | "directories";
}

/** Only these ids and names are offered: a shell could interpret other characters. */
const safeWord = /^[0-9A-Za-z][0-9A-Za-z._-]{0,127}$/;

/**
 * The output of the hidden command `__complete WORD…` for the completion scripts of shells. WORD… is the command line up
 * to the cursor; its last word, perhaps empty, is completed. Each line is a candidate, with a tab before its
 * description; a last line `:files` or `:directories` asks the shell to add paths.
 */
export async function complete(
  words: readonly string[],
  listSessions: () => Promise<readonly SessionChoice[]>,
): Promise<string> {
  const current = words.at(-1) ?? "";
  const { candidates = [], paths } = await completionOf(words, listSessions);
  const lines = candidates
    .filter(([word]) => word.startsWith(current))
    .map(([word, description]) => (description === undefined ? word : `${word}\t${brief(description)}`));
  return [...lines, ...(paths === undefined ? [] : [`:${paths}`])].map((line) => `${line}\n`).join("");
}

/** The running daemon's sessions. Without a daemon there are none; a completion never reports an error. */
export async function runningSessions(env: NodeJS.ProcessEnv, signal: AbortSignal): Promise<readonly SessionChoice[]> {
  try {
    const stateDir = stateDirectory(undefined, env);
    const { sessions } = await callDaemon("session/list", {}, { stateDir, signal });
    return sessions;
  } catch {
    return [];
  }
}

async function completionOf(
  words: readonly string[],
  listSessions: () => Promise<readonly SessionChoice[]>,
): Promise<Completion> {
  if (words.length <= 1) return { candidates: [...commandNames(), ["--help"], ["--version"]] };
  const [name = "", ...rest] = words;
  const spec = Object.hasOwn(table, name) ? table[name] : undefined;
  if (spec === undefined) return {};
  const typed = rest.at(-1) ?? "";
  const { option, place } = positionAfter(spec, rest.slice(0, -1));
  if (option !== undefined) return valuesOf(option);
  if (rest.at(-1)?.startsWith("-") === true) return { candidates: optionNames(spec) };
  const last = spec.arguments.at(-1);
  const argument = spec.arguments[place] ?? (last?.many === true ? last : undefined);
  return argument === undefined ? {} : argumentsFor(argument, typed, listSessions);
}

/** The option whose value comes next, or the index of the next argument. */
function positionAfter(
  spec: CommandSpec,
  words: readonly string[],
): { readonly option: OptionSpec | undefined; readonly place: number } {
  let option: OptionSpec | undefined;
  let place = 0;
  for (const word of words) {
    if (option !== undefined) option = undefined;
    else if (word === "-" || !word.startsWith("-")) place += 1;
    else option = Object.entries(spec.options).find(([name, of]) => takesValueAs(word, name, of))?.[1];
  }
  return { option, place };
}

function takesValueAs(word: string, name: string, { type, short }: OptionSpec): boolean {
  return type === "string" && (word === `--${name}` || (short !== undefined && word === `-${short}`));
}

function valuesOf({ choices, placeholder }: OptionSpec): Completion {
  if (choices !== undefined) return { candidates: choices.map((word) => [word]) };
  if (placeholder === "DIR") return { paths: "directories" };
  return placeholder === "FILE" || placeholder === "PATH" ? { paths: "files" } : {};
}

async function argumentsFor(
  { name, choices }: ArgumentSpec,
  typed: string,
  listSessions: () => Promise<readonly SessionChoice[]>,
): Promise<Completion> {
  if (choices !== undefined) return { candidates: choices.map((word) => [word]) };
  if (name === "COMMAND") return { candidates: commandNames() };
  if (name !== "SESSION" && name !== "SOURCE") return {};
  const sessions = (await listSessions()).flatMap((session) => wordsFor(session, typed));
  const candidates: readonly Candidate[] = [["last", "The newest session"], ...sessions];
  return name === "SOURCE" ? { candidates, paths: "files" } : { candidates };
}

/** The end of the id and the name of a session; the complete id if its beginning was typed. */
function wordsFor({ sessionId, name, cwd }: SessionChoice, typed: string): readonly Candidate[] {
  const end = shortId(sessionId);
  const words = [
    end.startsWith(typed) || !sessionId.startsWith(typed) ? end : sessionId,
    ...(name === undefined ? [] : [name]),
  ];
  const description = oneLine([name, cwd].filter((text) => text !== undefined && text !== "").join(", "));
  return words.filter((word) => safeWord.test(word)).map((word) => [word, description]);
}

function commandNames(): readonly Candidate[] {
  return Object.entries(table).map(([name, { summary }]) => [name, summary]);
}

function optionNames({ options }: CommandSpec): readonly Candidate[] {
  return Object.entries(options).flatMap(([name, { short, description }]) => {
    const long: Candidate = [`--${name}`, description];
    return short === undefined ? [long] : [long, [`-${short}`, description]];
  });
}

/** The first sentence of a description, without Markdown. */
function brief(description: string): string {
  const [first = ""] = description.split(/(?<=[.:]) /);
  return first.replaceAll("`", "").replace(/[.:]$/, "");
}
