import { basename } from "node:path";
import { isRecord } from "../../../protocol/objects.ts";
import { pathsIn, wholePath } from "../protection/paths.ts";
import type { Call, Calls } from "./calls.ts";

/** Read-only tools. Any other tool that names a file may have changed it. */
const readers: ReadonlySet<string> = new Set(["read", "read_file", "grep", "find", "ls", "glob", "list", "search"]);
/** Tools that search the session's directory by default. */
const searchers: ReadonlySet<string> = new Set(["grep", "find", "ls", "glob", "list", "search"]);
export const readTools: ReadonlySet<string> = new Set(["read", "read_file"]);
export const writeTools: ReadonlySet<string> = new Set(["write", "write_file"]);
export const editTools: ReadonlySet<string> = new Set([
  "edit",
  "edit_file",
  "multi_edit",
  "multiedit",
  "notebook_edit",
]);

/** Arguments with commands or patches, which name their files in their text. */
const commandArguments = ["command", "cmd", "script", "input", "patch"];
/** Possible file names in a command. A command with more can concern any file. */
const maxWords = 64;
/** A longer command can concern any file. UTF-16 units. */
const maxCommand = 65_536;

/** A possible change by a call. */
interface Touch {
  readonly at: number;
  readonly paths: readonly string[];
  /** The command of a shell call. */
  readonly command?: string;
}

/** Possible file changes in the order of the context. */
export class Touches {
  readonly #touches: readonly Touch[];
  readonly #cwd: string;
  /** File names by command, cached because each is compared with many. */
  readonly #files = new Map<string, ReadonlySet<string> | undefined>();

  constructor({ all, commands }: Calls, cwd: string) {
    this.#cwd = cwd;
    const byCalls = all.flatMap((call) => this.#by(call) ?? []);
    this.#touches = [...byCalls, ...commands.map(({ at, command }) => ({ at, paths: [], command }))];
  }

  /** The absolute paths that a call names, or the session's directory for a search without a path. */
  pathsOf({ tool, block }: Call): string[] {
    const named = pathsIn(block.arguments).map((path) => wholePath(path, this.#cwd));
    return named.length === 0 && searchers.has(tool) ? [this.#cwd] : named;
  }

  /** Whether anything between two calls may have changed the subject of the first. */
  between(earlier: Call, later: Call): boolean {
    const from = earlier.made.at;
    const to = later.made.at;
    const paths = this.pathsOf(earlier);
    const command = commandOf(earlier);
    return this.#touches.some((touch) => {
      if (touch.at <= from || touch.at >= to) return false;
      if (paths.some((path) => this.#isTouched(path, touch))) return true;
      if (command !== undefined && touch.command !== undefined && this.#shareFile(command, touch.command)) return true;
      return command !== undefined && touch.paths.some((path) => isNamed(path, command));
    });
  }

  #isTouched(path: string, { paths, command }: Touch): boolean {
    if (paths.some((one) => one === path || one.startsWith(`${path}/`) || path.startsWith(`${one}/`))) return true;
    return command !== undefined && path !== this.#cwd && isNamed(path, command);
  }

  /** Whether two commands may concern the same file: a common name is enough. */
  #shareFile(one: string, other: string): boolean {
    const files = this.#filesIn(one);
    // A command without file names shares no file.
    if (files?.size === 0) return false;
    const others = this.#filesIn(other);
    return files === undefined || others === undefined || [...files].some((file) => others.has(file));
  }

  #filesIn(command: string): ReadonlySet<string> | undefined {
    if (!this.#files.has(command)) this.#files.set(command, filesIn(command));
    return this.#files.get(command);
  }

  #by(call: Call): Touch | undefined {
    const { tool, made } = call;
    // A failed write or edit has changed nothing.
    const hasFailed = call.result?.message.isError === true;
    const command = commandOf(call);
    if (command !== undefined) return { at: made.at, paths: [], command };
    if (readers.has(tool) || (hasFailed && (writeTools.has(tool) || editTools.has(tool)))) return undefined;
    const paths = pathsIn(call.block.arguments).map((path) => wholePath(path, this.#cwd));
    return paths.length === 0 ? undefined : { at: made.at, paths };
  }
}

function commandOf({ block }: Call): string | undefined {
  const args: unknown = block.arguments;
  if (!isRecord(args)) return undefined;
  return commandArguments.map((name) => args[name]).find((value): value is string => typeof value === "string");
}

/** Whether a command may concern a file: the base name is enough. */
function isNamed(path: string, command: string): boolean {
  return command.length > maxCommand || command.includes(basename(path));
}

/** The words of a command that look like file names. `undefined`: too long, or too many. */
function filesIn(command: string): ReadonlySet<string> | undefined {
  if (command.length > maxCommand) return undefined;
  const words = command.split(/[\s"'`;|&()<>=:]+/u).filter((word) => /[./]/u.test(word) && /\w/u.test(word));
  return words.length > maxWords ? undefined : new Set(words.map((word) => basename(word)));
}
