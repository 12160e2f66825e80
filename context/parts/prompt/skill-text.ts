import { dirname } from "node:path";
import { linesOf, markdownPieces, sectionOf } from "./markdown.ts";

/** A skill with its text, as it is now. */
export interface SkillText {
  readonly name: string;
  readonly description: string;
  readonly path: string;
  /** The file without its front matter. */
  readonly body: string;
  /** What pi puts into the message for `/skill:name`. */
  readonly block: string;
}

export type TokensOf = (text: string) => number;

/** The maximum result of one `get_skill_detail` call, in UTF-16 units. */
export const maxDetailChars = 50 * 1024;

/** A use that only points to an earlier one costs less than this. */
const maxPointerTokens = 60;
/** The same where the estimates of a model say little yet: names of random letters take a token for two of them. */
const maxPointerChars = 160;
const maxShownName = 64;

export function skillText(name: string, description: string, path: string, content: string): SkillText {
  const body = bodyOf(content);
  return { name, description, path, body, block: blockOf({ name, path }, `${references(path)}\n\n${body}`) };
}

const blockEnd = "\n</skill>";

/** A skill's text in the way in which pi sets it off. */
function blockOf({ name, path }: Pick<SkillText, "name" | "path">, text: string): string {
  return `<skill name="${name}" location="${path}">\n${text}${blockEnd}`;
}

function references(path: string): string {
  return `References are relative to ${dirname(path)}.`;
}

/** Without the front matter, as pi cuts it off. */
export function bodyOf(content: string): string {
  const text = content.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const end = text.startsWith("---") ? text.indexOf("\n---", 3) : -1;
  return (end < 0 ? text : text.slice(end + 4)).trim();
}

/** Whether a user's message begins with this block, as pi or a person has put it there. */
export function beginsWithBlock(text: string, block: string): boolean {
  return text.startsWith(block) && (text.length === block.length || text.startsWith("\n\n", block.length));
}

/** Says that the skill's text is there already. */
export function pointerTo(skill: SkillText, where: "message" | "prompt", tokensOf: TokensOf): string {
  const text = pointerTexts[where];
  const pointer = blockOf(skill, text);
  const isShort = pointer.length <= maxPointerChars && tokensOf(pointer) < maxPointerTokens;
  return isShort ? pointer : lineOf(skill, text);
}

/** For little room. */
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
  /** The tool that gives the text, if the session has it. */
  readonly tool: string | undefined;
}

/** What the skill is about, and how to get at its text: as much of it as the tokens allow. */
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

/** Something less than a skill's text at the beginning of a message. */
export interface ShortUse {
  readonly name: string;
  readonly kind: "pointer" | "digest";
  /** Where it ends in the message. */
  readonly end: number;
}

/** `undefined`: the message begins with something else, or with a skill's whole text. */
export function shortUseOf(text: string): ShortUse | undefined {
  const block = blockAt.exec(text);
  const { name, rest = "" } = (block ?? lineAt.exec(text))?.groups ?? {};
  const closing = block === null ? text.indexOf("]") + 1 : text.indexOf(blockEnd) + blockEnd.length;
  const end = Math.max(0, closing);
  if (name === undefined) return undefined;
  if (rest.startsWith(digestStart)) return { name, kind: "digest", end };
  return Object.values(pointerTexts).includes(rest as never) ? { name, kind: "pointer", end } : undefined;
}

/** The greatest number up to `most` for which it fits: what fits less fits too. */
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

/** Never between the two halves of a character. */
function cutTo(text: string, length: number): string {
  if (length >= text.length) return text;
  const last = text.charCodeAt(length - 1);
  return text.slice(0, last >= 0xd800 && last < 0xdc00 ? length - 1 : length);
}

function trimEnd(line: string): string {
  return line.trimEnd();
}

/** The text of a skill, or of one of its sections. Throws with the headings that there are. */
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
