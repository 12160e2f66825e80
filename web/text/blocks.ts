import { type BlockNode, nodesOf } from "./nodes.ts";

/** A part of a Markdown text that later text does not change. Views compare blocks by identity. */
export interface Block {
  /** Its place in the text, for keys. */
  readonly index: number;
  readonly nodes: readonly BlockNode[];
}

/** A longer part is divided at the next line, because the time that a part takes grows faster than its length. */
const maxPartChars = 4 * 1_024;
/** A shorter part is not divided, because each has a cost of its own. */
const minPartChars = 256;
/** A part that is still longer, because of one long line, is not read as Markdown. */
const maxLexedChars = 4 * maxPartChars;
/** Where a part is divided within an entry of a list; and within a table, whose rest is no table. */
const maxEntryChars = 1.5 * maxPartChars;
const maxTableChars = 3.5 * maxPartChars;
/** How many marks of quotes and lists a line begins with, at most, in a part that is read as Markdown. */
const maxMarks = 16;
/** The same for the columns before its first word, because each level of a list adds some. */
const maxIndent = 64;

/**
 * The same for the characters of a paragraph times its marks of emphasis: the lexer looks for the end of each mark in all
 * that follows. It takes 50 ms for so many.
 */
const maxEmphasis = 1_000_000;

/** What ends a list without a blank line before it. */
const listEnd = /^ {0,3}(?:`{3}|~{3}|#{1,6}(?:\s|$)|>|([-*_])[ \t]*(?:\1[ \t]*){2,}$|<[a-z!?/])/i;

type Kind = "other" | "list" | "fence";

/** Where the reader is, after some whole lines. Later text does not change what is before `start`. */
interface Place {
  /** Where the current part begins. */
  readonly start: number;
  readonly kind: Kind;
  /** The marks that opened a block of code, which can be in an entry of a list. */
  readonly fence: string;
  /** In a list: the column where the words of its last entry begin. */
  readonly offset: number;
  readonly isAfterBlank: boolean;
}

interface Part {
  readonly start: number;
  readonly end: number;
  readonly kind: Kind;
}

const fenceOpening = /^ {0,3}(`{3,}(?=[^`]*$)|~{3,})/;
const anyListMark = /^[ \t]*([-+*]|\d{1,9}[.)])[ \t]+\S/;
const listMark = /^ {0,3}(?:[-+*]|\d{1,9}[.)])(?:[ \t]+(?=\S)|[ \t]*$)/;

/**
 * Markdown that grows at its end. It is divided into parts at lines of which the text before them decides that they begin
 * something new; each part is read alone. So a text has the same blocks whether it grows or comes at once, and growing
 * costs as much as reading the last part.
 */
export class GrowingMarkdown {
  /** The text from the current part on. What is before it is not touched again, however long it is. */
  #tail = "";
  /** What was read of the tail, by whole lines. */
  #read = 0;
  #place: Place = startAt(0);
  /** How many parts are before the current one. */
  #ended = 0;
  #blocks: readonly Block[] = [];
  /** The source of each block. */
  readonly #sources: string[] = [];
  /** A return character that may be half of a line end. */
  #carry = "";

  /** Everything that was appended, with the line ends of Unix. */
  get text(): string {
    return this.#sources.slice(0, this.#ended).join("") + this.#tail;
  }

  get blocks(): readonly Block[] {
    return this.#blocks;
  }

  append(text: string): void {
    const added = this.#carry + text;
    this.#carry = added.endsWith("\r") ? "\r" : "";
    this.#tail += added.slice(0, added.length - this.#carry.length).replace(/\r\n?/g, "\n");
    const ended = this.#readLines();
    const parts = [...ended, ...this.#open()];
    const blocks = parts.map((part, index) => this.#block(part, this.#ended + index));
    this.#blocks = [...this.#blocks.slice(0, this.#ended), ...blocks];
    this.#sources.length = this.#blocks.length;
    this.#ended += ended.length;
    this.#drop(this.#place.start);
  }

  /** Returns the parts that have ended. */
  #readLines(): readonly Part[] {
    const ended: Part[] = [];
    for (;;) {
      const end = this.#tail.indexOf("\n", this.#read);
      if (end === -1) return ended;
      this.#place = this.#afterLine(this.#place, this.#read, end, ended);
      this.#read = end + 1;
    }
  }

  /** The parts after them. The last line is not complete: what it is can change. */
  #open(): readonly Part[] {
    const parts: Part[] = [];
    const { length } = this.#tail;
    const isRead = this.#read === length;
    const { start, kind } = isRead ? this.#place : this.#afterLine(this.#place, this.#read, length, parts);
    return start < length ? [...parts, { start, end: length, kind }] : parts;
  }

  /** Reads a line; parts that end before it are added to `ended`. */
  #afterLine(place: Place, from: number, to: number, ended: Part[]): Place {
    const line = this.#tail.slice(from, to);
    if (place.kind === "fence") {
      if (!closes(line, place.fence)) return place;
      ended.push({ start: place.start, end: to + 1, kind: "fence" });
      return startAt(to + 1);
    }
    if (/^[ \t]*$/.test(line)) return { ...place, isAfterBlank: true };
    const next = afterWords(place, line, from - place.start);
    if (next.begins && from > place.start) ended.push({ start: place.start, end: from, kind: place.kind });
    const { kind, fence, offset } = next;
    return { start: next.begins ? from : place.start, kind, fence, offset, isAfterBlank: false };
  }

  #block(part: Part, index: number): Block {
    const source = this.#tail.slice(part.start, part.end);
    const before = this.#blocks[index];
    if (before !== undefined && this.#sources[index] === source) return before;
    this.#sources[index] = source;
    return { index, nodes: part.kind === "fence" ? [codeOf(source)] : nodesOfPart(source) };
  }

  #drop(chars: number): void {
    this.#tail = this.#tail.slice(chars);
    this.#read -= chars;
    this.#place = { ...this.#place, start: 0 };
  }
}

/** The blocks of a text that does not grow. */
export function blocksOf(text: string): readonly Block[] {
  const markdown = new GrowingMarkdown();
  markdown.append(text);
  return markdown.blocks;
}

interface Next extends Pick<Place, "kind" | "fence" | "offset"> {
  /** Whether the line begins a part. */
  readonly begins: boolean;
}

/** Where the reader is after a line that is not blank. `chars`: the length of the part before it. */
function afterWords(place: Place, line: string, chars: number): Next {
  const mark = listMark.exec(line)?.[0];
  const indent = indentOf(line);
  const isInList = place.kind === "list";
  const isInEntry = isInList && indent >= place.offset;
  const kind = mark === undefined ? "other" : "list";
  const beginning = { begins: true, kind, fence: "", offset: offsetAfter(mark) } as const;

  if (chars >= limitAt(line, isInList && mark === undefined)) return beginning;
  if (place.fence !== "" && isInEntry) {
    return { ...place, begins: false, fence: closes(line.trimStart(), place.fence) ? "" : place.fence };
  }
  const fence = fenceOpening.exec(isInEntry ? line.trimStart() : line)?.[1] ?? "";
  if (fence !== "" && !isInEntry) return { begins: true, kind: "fence", fence, offset: 0 };
  const isContinued = isInList ? mark !== undefined || indent >= 2 : indent >= 4;
  const isOther = place.isAfterBlank && !isContinued;
  if (isOther && chars >= minPartChars) return beginning;
  if (mark !== undefined)
    return { ...beginning, begins: false, fence, offset: isInEntry ? place.offset : offsetAfter(mark) };
  const isStillList = isInList && !isOther && (isInEntry || !listEnd.test(line));
  return { begins: false, kind: isStillList ? "list" : "other", fence, offset: place.offset };
}

/** Where a part is divided before a line. */
function limitAt(line: string, isWithinEntry: boolean): number {
  if (line.includes("|")) return maxTableChars;
  return isWithinEntry ? maxEntryChars : maxPartChars;
}

function startAt(start: number): Place {
  return { start, kind: "other", fence: "", offset: 0, isAfterBlank: true };
}

/** Where the words begin after a list mark with the white space around it; without words one column after the mark. */
function offsetAfter(mark = ""): number {
  const columns = indentOf(mark.replace(/[-+*.)\d]/g, " "));
  const end = mark.trimEnd().length;
  return columns > end + 4 || columns === end ? end + 1 : columns;
}

function indentOf(line: string): number {
  let columns = 0;
  for (const character of line) {
    if (character === " ") columns += 1;
    else if (character === "\t") columns += 4 - (columns % 4);
    else break;
  }
  return columns;
}

function closes(line: string, fence: string): boolean {
  const marks = /^ {0,3}(`{3,}|~{3,}) *$/.exec(line)?.[1];
  return marks !== undefined && marks[0] === fence[0] && marks.length >= fence.length;
}

function nodesOfPart(source: string): readonly BlockNode[] {
  if (source.trim() === "") return [];
  return isReadable(source) ? nodesOf(source) : [{ kind: "plain", text: source }];
}

function isReadable(source: string): boolean {
  if (source.length > maxLexedChars) return false;
  let [chars, marks, isItem] = [0, 0, false];
  for (const line of source.split("\n")) {
    if (!isShallow(line)) return false;
    const mark = anyListMark.exec(line)?.[1];
    const isOwn = mark !== undefined && (isItem || !/\d/.test(mark));
    if (isOwn || line.trim() === "") [chars, marks, isItem] = [0, 0, isOwn];
    chars += line.length;
    marks += line.match(/[*_~]+/g)?.length ?? 0;
    if (chars * marks > maxEmphasis) return false;
  }
  return true;
}

function isShallow(line: string): boolean {
  const before = /^(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t])))*[ \t]*/.exec(line)?.[0] ?? "";
  const marks = before.match(/[>+*-]|\d[.)]/g)?.length ?? 0;
  return marks <= maxMarks && before.length <= maxIndent + marks;
}

/** A block of code, as its fence says. */
function codeOf(source: string): BlockNode {
  const [opening = "", ...rest] = source.split("\n");
  const fence = fenceOpening.exec(opening)?.[1] ?? "";
  if (rest.at(-1) === "") rest.pop();
  if (rest.length > 0 && closes(rest.at(-1) ?? "", fence)) rest.pop();
  const indent = /^ */.exec(opening)?.[0].length ?? 0;
  const text =
    indent === 0 ? rest.join("\n") : rest.map((line) => line.replace(new RegExp(`^ {1,${indent}}`), "")).join("\n");
  const word = opening.trim().slice(fence.length).trim();
  const language = /^[\w+#.-]{1,32}(?=\s|$)/.exec(word)?.[0];
  return { kind: "code", language, text };
}
