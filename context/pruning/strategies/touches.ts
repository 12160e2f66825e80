import { basename } from "node:path";
import { isObject } from "../../../extension/pi-types.ts";
import { pathsIn, wholePath } from "../protection/paths.ts";
import type { Call, Calls } from "./calls.ts";

/** Tools that only look at files. Any other that names a file may have changed it. */
const readers: ReadonlySet<string> = new Set(["read", "read_file", "grep", "find", "ls", "glob", "list", "search"]);
/** They look below the session's directory where they name no other. */
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

/** Of shells, and of patches, which name their files in their text. */
const commandArguments = ["command", "cmd", "script", "input", "patch"];
/** Words of a command that may be files. With more it may be about any file. */
const maxWords = 64;
/** A longer command may have touched anything. UTF-16 units. */
const maxCommand = 65_536;

/** What a call may have changed. */
interface Touch {
  readonly at: number;
  readonly paths: readonly string[];
  /** Of a shell. */
  readonly command?: string;
}

/** What may have changed files, in the order of the context. */
export class Touches {
  readonly #touches: readonly Touch[];
  readonly #cwd: string;
  /** By command: each is compared with many. */
  readonly #files = new Map<string, ReadonlySet<string> | undefined>();

  constructor({ all, commands }: Calls, cwd: string) {
    this.#cwd = cwd;
    const byCalls = all.flatMap((call) => this.#by(call) ?? []);
    this.#touches = [...byCalls, ...commands.map(({ at, command }) => ({ at, paths: [], command }))];
  }

  /** Whole paths that a call is about: those that it names, or all below the session's directory. */
  pathsOf({ tool, block }: Call): string[] {
    const named = pathsIn(block.arguments).map((path) => wholePath(path, this.#cwd));
    return named.length === 0 && searchers.has(tool) ? [this.#cwd] : named;
  }

  /** Whether something between two calls may have changed what the first was about. */
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

  /** Whether two commands may be about the same file: a name in both is enough. */
  #shareFile(one: string, other: string): boolean {
    const files = this.#filesIn(one);
    // What names no file is about what it is about.
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
    // What failed has changed nothing, as far as tools of files go.
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
  if (!isObject(args)) return undefined;
  return commandArguments.map((name) => args[name]).find((value): value is string => typeof value === "string");
}

/** Whether a command may be about a file: a name in it is enough. */
function isNamed(path: string, command: string): boolean {
  return command.length > maxCommand || command.includes(basename(path));
}

/** The names of files that a command has in it, by how they look. `undefined`: it is too long, or has too many. */
function filesIn(command: string): ReadonlySet<string> | undefined {
  if (command.length > maxCommand) return undefined;
  const words = command.split(/[\s"'`;|&()<>=:]+/u).filter((word) => /[./]/u.test(word) && /\w/u.test(word));
  return words.length > maxWords ? undefined : new Set(words.map((word) => basename(word)));
}
