import { dirname } from "node:path";
import { linesOf, markdownPieces, sectionOf } from "./markdown.ts";

/** A skill with its current text. */
export interface SkillText {
  readonly name: string;
  readonly description: string;
  readonly path: string;
  /** The file without its front matter. */
  readonly body: string;
  /** The text that pi inserts for `/skill:name`. */
  readonly block: string;
}

export type TokensOf = (text: string) => number;

/** The maximum result of one `get_skill_detail` call, in UTF-16 units. */
export const maxDetailChars = 50 * 1024;

/** Maximum tokens of a pointer to an earlier use. */
const maxPointerTokens = 60;
/** The same before the estimates of a model are reliable: random letters take one token for two. */
const maxPointerChars = 160;
const maxShownName = 64;

export function skillText(name: string, description: string, path: string, content: string): SkillText {
  const body = bodyOf(content);
  return { name, description, path, body, block: blockOf({ name, path }, `${references(path)}\n\n${body}`) };
}

const blockEnd = "\n</skill>";

/** Returns a skill's text in pi's markup. */
function blockOf({ name, path }: Pick<SkillText, "name" | "path">, text: string): string {
  return `<skill name="${name}" location="${path}">\n${text}${blockEnd}`;
}

function references(path: string): string {
  return `References are relative to ${dirname(path)}.`;
}

/** Removes the front matter as pi does. */
export function bodyOf(content: string): string {
  const text = content.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const end = text.startsWith("---") ? text.indexOf("\n---", 3) : -1;
  return (end < 0 ? text : text.slice(end + 4)).trim();
}

/** Whether a user's message begins with this block. */
export function beginsWithBlock(text: string, block: string): boolean {
  return text.startsWith(block) && (text.length === block.length || text.startsWith("\n\n", block.length));
}

/** Returns a pointer to the skill's text in the context. */
export function pointerTo(skill: SkillText, where: "message" | "prompt", tokensOf: TokensOf): string {
  const text = pointerTexts[where];
  const pointer = blockOf(skill, text);
  const isShort = pointer.length <= maxPointerChars && tokensOf(pointer) < maxPointerTokens;
  return isShort ? pointer : lineOf(skill, text);
}

/** Used if few tokens are left. */
function lineOf({ name }: SkillText, text: string): string {
  return `[Skill "${cutTo(name, maxShownName)}": ${text}]`;
}

const pointerTexts = {
  message: "Its text stands above, unchanged; if not, read the file.",
  prompt: "Its text stands in the system prompt: go by it.",
} as const;

export interface DigestOptions {
  readonly tokens: number;
  readonly tokensOf: TokensOf;
  /** The tool that returns the text, if the session has it. */
  readonly tool: string | undefined;
}

/** Returns a digest of the skill and how to get its text, within a number of tokens. */
export function digestOf(skill: SkillText, { tokens, tokensOf, tool }: DigestOptions): string {
  const call = tool === undefined ? "read the file" : `call ${tool} (whole, or one section by its heading)`;
  const note = `${digestStart} Before you act on it, ${call}.`;
  const pieces = markdownPieces(skill.body);
  const headings = pieces
    .filter(({ kind }) => kind === "heading")
    .map(({ level, title }) => `${"#".repeat(level)} ${title}`);
  const lines = linesOf(pieces.map(({ kind, text }) => (kind === "paragraph" ? text : "")).join("")).map(trimEnd);
  const written = (parts: DigestParts): string => {
    const { description, headings: named, lines: first } = parts;
    const texts = [
      note,
      ...(description === "" ? [] : [`It is about: ${description}`]),
      ...(named.length === 0 ? [] : [`Its headings:\n${named.join("\n")}`]),
      ...(first.length === 0 ? [] : [`It begins:\n${first.join("\n")}`]),
    ];
    return blockOf(skill, texts.join("\n\n"));
  };
  const fits = (parts: DigestParts): boolean => tokensOf(written(parts)) <= tokens;
  const none: DigestParts = { description: "", headings: [], lines: [] };
  if (!fits(none)) return lineOf(skill, `${digestStart} First ${call}.`);
  const description = longest(skill.description.length, (length) =>
    fits({ ...none, description: cutTo(skill.description, length) }),
  );
  const about = { ...none, description: cutTo(skill.description, description) };
  const named = longest(headings.length, (count) => fits({ ...about, headings: headings.slice(0, count) }));
  const withHeadings = { ...about, headings: headings.slice(0, named) };
  const first = longest(lines.length, (count) => fits({ ...withHeadings, lines: lines.slice(0, count) }));
  return written({ ...withHeadings, lines: lines.slice(0, first) });
}

interface DigestParts {
  readonly description: string;
  readonly headings: readonly string[];
  readonly lines: readonly string[];
}

const digestStart = "This is a digest.";

const blockAt = /^<skill name="(?<name>[^"\n]+)" location="[^\n]*">\n(?<rest>[^\n]*)/;
const lineAt = /^\[Skill "(?<name>[^"\n]+)": (?<rest>[^\n]*)\](?:\n|$)/;

/** A pointer or digest at the beginning of a message. */
export interface ShortUse {
  readonly name: string;
  readonly kind: "pointer" | "digest";
  /** Its end in the message. */
  readonly end: number;
}

/** `undefined`: the message begins with neither a pointer nor a digest. */
export function shortUseOf(text: string): ShortUse | undefined {
  const block = blockAt.exec(text);
  const { name, rest = "" } = (block ?? lineAt.exec(text))?.groups ?? {};
  const closing = block === null ? text.indexOf("]") + 1 : text.indexOf(blockEnd) + blockEnd.length;
  const end = Math.max(0, closing);
  if (name === undefined) return undefined;
  if (rest.startsWith(digestStart)) return { name, kind: "digest", end };
  return Object.values(pointerTexts).includes(rest as never) ? { name, kind: "pointer", end } : undefined;
}

/** Binary search for the greatest number up to `most` that fits. */
function longest(most: number, fits: (count: number) => boolean): number {
  let low = 0;
  let high = most;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (fits(middle)) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** Never splits a surrogate pair. */
function cutTo(text: string, length: number): string {
  if (length >= text.length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? length - 1 : length);
}

function trimEnd(line: string): string {
  return line.trimEnd();
}

/** Returns the text of a skill or of one section. Throws an error that lists the headings. */
export function detailOf(skill: SkillText, section: string | undefined): string {
  if (section === undefined) return withinLimit(skill, `${references(skill.path)}\n\n${skill.body}`);
  const pieces = markdownPieces(skill.body);
  const wanted = plain(section);
  const at = pieces.findIndex(({ kind, title }) => kind === "heading" && plain(title) === wanted);
  if (at >= 0) return withinLimit(skill, sectionOf(pieces, at).trimEnd());
  const titles = pieces.filter(({ kind }) => kind === "heading").map(({ title }) => title);
  const known = titles.length === 0 ? "It has none." : `It has: ${titles.slice(0, 64).join(" · ")}`;
  throw new Error(`The skill ${skill.name} has no section "${cutTo(section, 120)}". ${cutTo(known, 4_000)}`);
}

function plain(title: string): string {
  return title.replace(/^#+/, "").trim().toLowerCase();
}

function withinLimit({ path }: SkillText, text: string): string {
  if (text.length <= maxDetailChars) return text;
  const cut = cutTo(text, maxDetailChars);
  const at = cut.lastIndexOf("\n");
  const kept = at > 0 ? cut.slice(0, at) : cut;
  return `${kept}\n\n[Cut at ${kept.length} of ${text.length} characters: ask for a section, or read ${path}.]`;
}
