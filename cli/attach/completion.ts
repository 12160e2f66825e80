import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { delimiter, join } from "node:path";
import {
  type AutocompleteItem,
  type AutocompleteProvider,
  type AutocompleteSuggestions,
  CombinedAutocompleteProvider,
  fuzzyFilter,
  type SlashCommand,
} from "@earendil-works/pi-tui";
import { oneLine, printable } from "../text.ts";

export interface CompletionOptions {
  readonly commands: SlashCommand[];
  /** The session's directory. Its files are completed if it is on this machine. */
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
}

type Suggest = AutocompleteProvider["getSuggestions"];

/** Entries of a directory tree that are read for one completion, without the program fd. */
const maxEntries = 5_000;
const maxSuggestions = 20;
const skipped = new Set([".git", "node_modules", ".hg", ".svn"]);

/** Completes commands by `/`, and files by `@` and Tab. */
export function completion({ commands, cwd, env }: CompletionOptions): AutocompleteProvider {
  const fd = programOf(["fd", "fdfind"], env);
  const combined = new CombinedAutocompleteProvider(commands, cwd, fd);
  const suggest: Suggest = async (lines, line, column, options) => {
    const before = (lines[line] ?? "").slice(0, column);
    const [, quoted, word] = /(?:^|\s)@(?:"([^"]*)|([^\s"]*))$/.exec(before) ?? [];
    const query = quoted ?? word;
    // A path. The library would replace it by the name of a command.
    if (query === undefined && options.force !== true && /^\/[^\s/]*\//.test(before)) return null;
    if (query === undefined) return await combined.getSuggestions(lines, line, column, options);
    if (!existsSync(cwd)) return null;
    if (fd !== null) return await combined.getSuggestions(lines, line, column, options);
    const items = await filesLike(cwd, query, options.signal);
    return items.length === 0 ? null : { items, prefix: `@${quoted === undefined ? "" : '"'}${query}` };
  };
  return {
    getSuggestions: async (...args) => {
      try {
        return safe(await suggest(...args));
      } catch {
        // No completion, for a directory that cannot be read, or a session that does not answer.
        return null;
      }
    },
    applyCompletion: (...args) => combined.applyCompletion(...args),
    shouldTriggerFileCompletion: (...args) => combined.shouldTriggerFileCompletion(...args),
  };
}

/** Leaves out names that could control the terminal: the editor could not show what it contains. */
function safe(suggestions: AutocompleteSuggestions | null): AutocompleteSuggestions | null {
  const items = suggestions?.items.flatMap((item) => {
    if (printable(item.value) !== item.value || item.value.includes("\n")) return [];
    const { description } = item;
    const shown = { value: item.value, label: oneLine(item.label) };
    return [description === undefined ? shown : { ...shown, description: oneLine(description) }];
  });
  return suggestions === null || items === undefined || items.length === 0 ? null : { ...suggestions, items };
}

async function filesLike(cwd: string, query: string, signal: AbortSignal): Promise<AutocompleteItem[]> {
  const slash = query.lastIndexOf("/") + 1;
  const paths = await pathsBelow(join(cwd, query.slice(0, slash)), signal);
  return fuzzyFilter(paths, query.slice(slash), (path) => path)
    .slice(0, maxSuggestions)
    .map((path) => {
      const whole = query.slice(0, slash) + path;
      return { value: /\s/.test(whole) ? `@"${whole}"` : `@${whole}`, label: path };
    });
}

/** The files and directories below a directory, those of upper levels first. Directories end in a slash. */
async function pathsBelow(root: string, signal: AbortSignal): Promise<string[]> {
  const paths: string[] = [];
  const directories = [""];
  for (const directory of directories) {
    const entries = await readdir(join(root, directory), { withFileTypes: true }).catch(() => []);
    for (const entry of entries) {
      if (signal.aborted || paths.length >= maxEntries) return paths;
      if (skipped.has(entry.name)) continue;
      const path = `${directory}${entry.name}${entry.isDirectory() ? "/" : ""}`;
      if (entry.isDirectory()) directories.push(path);
      paths.push(path);
    }
  }
  return paths;
}

function programOf(names: readonly string[], env: NodeJS.ProcessEnv): string | null {
  for (const directory of (env["PATH"] ?? "").split(delimiter)) {
    if (!directory.startsWith("/")) continue;
    for (const name of names) if (existsSync(join(directory, name))) return join(directory, name);
  }
  return null;
}
