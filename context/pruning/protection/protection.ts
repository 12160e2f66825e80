import { globOf, type Matcher } from "./glob.ts";
import { formsOf, pathsIn } from "./paths.ts";

/** What a person's globs keep in the context. */
export interface Protection {
  isTool(tool: string): boolean;
  /** Whether the call's arguments name a file that is protected. */
  isFile(args: unknown, cwd: string): boolean;
}

const compiled = new Map<string, Matcher>();
/** Globs that are kept compiled: more than one configuration has. */
const maxCompiled = 1_024;

/** Paths of which is known whether these globs, in this directory, mean them: each is asked for at every boundary. */
let known: { readonly by: string; readonly paths: Map<string, boolean> } = { by: "", paths: new Map() };
const maxKnown = 4_096;

/** By globs on tools' names and on paths. A glob without a slash means a file's name in any directory. */
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
