/** One import or re-export of a module. */
export interface Import {
  readonly specifier: string;
  /** Counted from 1. */
  readonly line: number;
  /** `type` is erased before the program runs; `dynamic` runs only when its line does. */
  readonly kind: "static" | "type" | "dynamic";
}

const statement =
  /^[ \t]*(?:import|export)\s+(type\s+(?!from\s))?(?:[^"';]*?\sfrom\s*|\*\s*from\s*)?["']([^"'\n]+)["']/gm;
const call = /\bimport\(\s*["']([^"'\n]+)["']/g;
const commentLine = /^\s*(?:\*|\/\/|\/\*)/;

/** Reads the imports from formatted TypeScript: statements begin a line, and specifiers are plain strings. */
export function importsOf(source: string): readonly Import[] {
  const found: Import[] = [];
  for (const match of source.matchAll(statement)) {
    const [text, type, specifier = ""] = match;
    const line = lineAt(source, match.index + text.length);
    found.push({ specifier, line, kind: type === undefined ? "static" : "type" });
  }
  for (const match of source.matchAll(call)) {
    const [, specifier = ""] = match;
    const lineStart = source.lastIndexOf("\n", match.index) + 1;
    if (commentLine.test(source.slice(lineStart, match.index + 1))) continue;
    found.push({ specifier, line: lineAt(source, match.index), kind: "dynamic" });
  }
  return found;
}

function lineAt(source: string, index: number): number {
  return source.slice(0, index).split("\n").length;
}
