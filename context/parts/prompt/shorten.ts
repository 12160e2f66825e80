import { wildcardOf } from "../../../protocol/glob.ts";
import { type MarkdownPiece, markdownPieces, sectionEnd } from "./markdown.ts";
import { type ContextFile, renderContextFiles } from "./project-context.ts";

/** A heading whose section is left out unless a condition holds. `*` matches any text. */
export interface SectionRule {
  readonly heading: string;
  readonly holds: boolean;
}

export interface ShortenOptions {
  readonly rules: readonly SectionRule[];
  readonly dedupe: boolean;
  /** Characters; a run of white space counts as one. */
  readonly minParagraphChars: number;
  /** Tokens of the whole section, including pi's text around the files. */
  readonly budgetTokens: number;
  readonly tokensOf: (text: string) => number;
}

/** The shortened context files, with counts of each kind of change. */
export interface Shortened {
  readonly text: string;
  readonly tokensBefore: number;
  readonly tokens: number;
  readonly excludedSections: number;
  readonly repeatedParagraphs: number;
  readonly cutSections: number;
}

/** Shortens the section `project_context`. The most distant file comes first, as in pi. */
export function shortenContextFiles(files: readonly ContextFile[], options: ShortenOptions): Shortened {
  const source = renderContextFiles(files);
  const tokensBefore = options.tokensOf(source);
  const excluded = files.map(({ path, content }) => withoutSections(path, markdownPieces(content), options.rules));
  const deduped = options.dedupe ? withoutRepeats(excluded, options) : { files: excluded, repeats: 0 };
  const { text, tokens, cut } = withinBudget(deduped.files, options);
  return {
    text,
    tokensBefore,
    tokens,
    excludedSections: excluded.reduce((sum, { left }) => sum + left, 0),
    repeatedParagraphs: deduped.repeats,
    cutSections: cut,
  };
}

interface Pieces {
  readonly path: string;
  readonly pieces: readonly MarkdownPiece[];
  /** Number of omitted sections. */
  readonly left: number;
}

/** One rule that holds includes a section, regardless of other rules. */
function withoutSections(path: string, pieces: readonly MarkdownPiece[], rules: readonly SectionRule[]): Pieces {
  const kept: MarkdownPiece[] = [];
  let left = 0;
  for (let at = 0; at < pieces.length; ) {
    const piece = pieces[at] as MarkdownPiece;
    const about = piece.kind === "heading" ? rules.filter(({ heading }) => wildcardOf(heading)(piece.title)) : [];
    if (about.length > 0 && !about.some(({ holds }) => holds)) {
      left += 1;
      at = sectionEnd(pieces, at);
    } else {
      kept.push(piece);
      at += 1;
    }
  }
  return { path, pieces: kept, left };
}

/** Replaces paragraphs that a nearer file also has by a line that names that file. */
function withoutRepeats(
  files: readonly Pieces[],
  { minParagraphChars, tokensOf }: ShortenOptions,
): { readonly files: readonly Pieces[]; readonly repeats: number } {
  const nearest = new Map<string, string>();
  let repeats = 0;
  const deduped = files.toReversed().map(({ path, pieces, left }): Pieces => {
    const keys = pieces.map((piece) => keyOf(piece, minParagraphChars));
    const owners = keys.map((key) => (key === undefined ? undefined : nearest.get(key)));
    const kept: MarkdownPiece[] = [];
    for (let at = 0; at < pieces.length; ) {
      const owner = owners[at];
      const end = owner === undefined ? at + 1 : runEnd(pieces, owners, at);
      const run = pieces.slice(at, end);
      const text = run.map((piece) => piece.text).join("");
      const line = owner === undefined ? undefined : pointerFor(text, owner, tokensOf);
      if (line !== undefined) {
        kept.push({ kind: "paragraph", text: line, level: 0, title: "" });
        repeats += run.filter(({ kind }) => kind === "paragraph").length;
      } else for (const piece of run) kept.push(piece);
      at = end;
    }
    for (const key of keys) if (key !== undefined && !nearest.has(key)) nearest.set(key, path);
    return { path, pieces: kept, left };
  });
  return { files: deduped.toReversed(), repeats };
}

function keyOf({ kind, text }: MarkdownPiece, minChars: number): string | undefined {
  if (kind !== "paragraph") return undefined;
  const key = text.trim().replace(/\s+/g, " ");
  return key.length < minChars ? undefined : key;
}

/** Returns the end of consecutive paragraphs that the same nearer file has. */
function runEnd(pieces: readonly MarkdownPiece[], owners: readonly (string | undefined)[], at: number): number {
  let end = at + 1;
  for (let next = end; next < pieces.length; next += 1) {
    if (owners[next] === owners[at]) end = next + 1;
    else if (pieces[next]?.kind !== "blank") break;
  }
  return end;
}

/** Returns the line that replaces a repeated text. `undefined`: the text is not longer. */
function pointerFor(text: string, owner: string, tokensOf: (text: string) => number): string | undefined {
  const lineEnd = /\r?\n$/.exec(text)?.[0] ?? "";
  const lines = [`[Same text as below, in ${owner}.]`, "[Same text below.]"];
  return lines.map((line) => line + lineEnd).find((line) => tokensOf(line) < tokensOf(text));
}

interface Section {
  readonly title: string;
  readonly text: string;
}

/** Omits sections, starting at the end of the most distant file, until the rest fits the budget. */
function withinBudget(
  files: readonly Pieces[],
  { budgetTokens, tokensOf }: ShortenOptions,
): { readonly text: string; readonly tokens: number; readonly cut: number } {
  const parts = files.map(({ path, pieces }) => ({ path, sections: sectionsOf(pieces) }));
  const written = (cut: number): { readonly text: string; readonly tokens: number } => {
    let left = cut;
    const rendered = parts.map(({ path, sections }) => {
      const here = Math.min(left, sections.length);
      left -= here;
      return { path, content: withCuts(path, sections, here) };
    });
    const text = renderContextFiles(rendered);
    return { text, tokens: tokensOf(text) };
  };
  const all = parts.reduce((sum, { sections }) => sum + sections.length, 0);
  let best = { cut: 0, ...written(0) };
  if (best.tokens <= budgetTokens) return best;
  best = { cut: all, ...written(all) };
  let low = 1;
  while (low < best.cut && best.tokens <= budgetTokens) {
    const cut = Math.floor((low + best.cut) / 2);
    const tried = written(cut);
    if (tried.tokens <= budgetTokens) best = { cut, ...tried };
    else low = cut + 1;
  }
  return best;
}

/** Splits at headings; the text before the first heading is a section too. */
function sectionsOf(pieces: readonly MarkdownPiece[]): readonly Section[] {
  const sections: Section[] = [];
  for (const { kind, text, title } of pieces) {
    const last = sections.at(-1);
    if (last === undefined || kind === "heading") sections.push({ title: kind === "heading" ? title : "", text });
    else sections[sections.length - 1] = { ...last, text: last.text + text };
  }
  return sections;
}

const maxNamed = 8;
const maxTitle = 60;

function withCuts(path: string, sections: readonly Section[], cut: number): string {
  const kept = sections.slice(0, sections.length - cut);
  const text = kept.map((section) => section.text).join("");
  if (cut === 0) return text;
  if (kept.length === 0) return `[Left out to save space: read ${path} when it matters.]`;
  const titles = sections.slice(kept.length).map(({ title }) => `"${title.slice(0, maxTitle)}"`);
  const more = titles.length > maxNamed ? ` and ${titles.length - maxNamed} more` : "";
  return `${text.trimEnd()}\n\n[Left out: ${titles.slice(0, maxNamed).join(", ")}${more}. Read ${path} when they matter.]`;
}

/** Names and titles looked up in a source; our texts never contain more. */
const maxQuoted = 1_000;

/** The lines that `pointerFor` and `withCuts` write. */
const pointers: readonly RegExp[] = [
  /^\[Same text as below, in (?<path>.+)\.\]$/,
  /^\[Same text below\.\]$/,
  /^\[Left out to save space: read (?<path>.+) when it matters\.\]$/,
  /^\[Left out: "(?<titles>.*)"(?: and \d+ more)?\. Read (?<path>.+) when they matter\.\]$/,
];

/**
 * Whether a text can be derived from these context files: it has only whole lines of theirs, and generated lines that
 * name only things in them. A foreign session file can contain any text for the prompt.
 */
export function canBeMadeOf(source: string, text: string): boolean {
  const lines = new Set(source.split("\n").map((line) => line.trimEnd()));
  const quoted = new Set<string>();
  return text.split("\n").every((written) => {
    const line = written.trimEnd();
    if (lines.has(line)) return true;
    const names = namesIn(line);
    if (names === undefined) return false;
    return names.every((name) => {
      if (quoted.has(name)) return true;
      quoted.add(name);
      return quoted.size <= maxQuoted && source.includes(name);
    });
  });
}

/** The names in a generated line. `undefined`: not a generated line. */
function namesIn(line: string): readonly string[] | undefined {
  for (const pointer of pointers) {
    const found = pointer.exec(line);
    if (found === null) continue;
    const { path, titles } = found.groups ?? {};
    return [...(path === undefined ? [] : [path]), ...(titles?.split('", "') ?? [])];
  }
  return undefined;
}
