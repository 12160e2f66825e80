import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

export const root = join(import.meta.dirname, "..", "..", "..");

/** The documents of the repository, by name. */
export const documents: readonly string[] = [
  "README.md",
  "AGENTS.md",
  "PROTOCOL.md",
  "ARCHITECTURE.md",
  "CONTRIBUTING.md",
  "CONFIGURATION.md",
  "CHANGELOG.md",
  "SECURITY.md",
  ...readdirSync(join(root, "docs"))
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file}`),
];

export function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

export interface Fence {
  /** The words after the backticks. */
  readonly info: readonly string[];
  readonly text: string;
}

/** The fenced blocks of a document. */
export function fencesOf(markdown: string): readonly Fence[] {
  return Array.from(markdown.matchAll(/^```(.*?)\n(.*?)^```$/gms), ([, info = "", text = ""]) => ({
    info: info.split(" "),
    text,
  }));
}

/** The code between single backticks in a document, each once. */
export function spansOf(markdown: string): readonly string[] {
  const prose = markdown.replaceAll(/^```.*?\n.*?^```$/gms, "");
  return [...new Set(Array.from(prose.matchAll(/`([^`\n]+)`/g), ([, span = ""]) => span))];
}

/** All code of a document, spans and blocks. */
export function codeOf(markdown: string): readonly string[] {
  return [...spansOf(markdown), ...fencesOf(markdown).flatMap(({ text }) => text.split("\n"))];
}

/** The targets of `#fragments`: the headings, as GitHub makes anchors of them. */
export function anchorsOf(markdown: string): ReadonlySet<string> {
  const headings = Array.from(markdown.matchAll(/^#+ (.+)$/gm), ([, heading = ""]) => heading);
  return new Set(
    headings.map((heading) =>
      heading
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    ),
  );
}

/** Every group of a pattern's matches. */
export function found(text: string, pattern: RegExp): readonly string[] {
  return Array.from(text.matchAll(pattern), ([, group = ""]) => group);
}
