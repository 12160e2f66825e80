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

/** By globs on tools' names and on paths. A glob without a slash means a file's name in any directory. */
export function protectionOf(tools: readonly string[], files: readonly string[] = []): Protection {
  const toolGlobs = tools.map(matcherOf);
  const fileGlobs = files.map(matcherOf);
  return {
    isTool: (tool) => toolGlobs.some((fits) => fits(tool)),
    isFile: (args, cwd) =>
      fileGlobs.length > 0 &&
      pathsIn(args).some((path) => formsOf(path, cwd).some((form) => fileGlobs.some((fits) => fits(form)))),
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
