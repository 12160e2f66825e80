import { globOf, type Matcher } from "../../../protocol/glob.ts";
import { formsOf, pathsIn } from "./paths.ts";

/** Tools and files that the user's globs protect. */
export interface Protection {
  isTool(tool: string): boolean;
  /** Whether the call's arguments name a protected file. */
  isFile(args: unknown, cwd: string): boolean;
}

const compiled = new Map<string, Matcher>();
/** Compiled globs in the cache; more than one configuration has. */
const maxCompiled = 1_024;

/** Cached results for these globs in this directory, because every boundary asks for each path. */
let known: { readonly by: string; readonly paths: Map<string, boolean> } = { by: "", paths: new Map() };
const maxKnown = 4_096;

/** Protects by globs on tool names and paths. A glob without a slash matches a file name in any directory. */
export function protectionOf(tools: readonly string[], files: readonly string[] = []): Protection {
  const toolGlobs = tools.map(matcherOf);
  const fileGlobs = files.map(matcherOf);
  const all = JSON.stringify(files);
  const isMeant = (path: string, cwd: string): boolean => {
    const by = `${cwd}\n${all}`;
    if (known.by !== by || known.paths.size >= maxKnown) known = { by, paths: new Map() };
    const found = known.paths.get(path) ?? formsOf(path, cwd).some((form) => fileGlobs.some((fits) => fits(form)));
    known.paths.set(path, found);
    return found;
  };
  return {
    isTool: (tool) => toolGlobs.some((fits) => fits(tool)),
    isFile: (args, cwd) => fileGlobs.length > 0 && pathsIn(args).some((path) => isMeant(path, cwd)),
  };
}

function matcherOf(glob: string): Matcher {
  const known = compiled.get(glob);
  if (known !== undefined) return known;
  const made = globOf(glob);
  if (compiled.size >= maxCompiled) compiled.clear();
  compiled.set(glob, made);
  return made;
}
