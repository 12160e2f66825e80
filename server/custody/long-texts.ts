import { isRecord } from "../../protocol/objects.ts";
import type { TranscriptCut } from "../../protocol/transcript-methods.ts";
import { limits } from "../configuration/limits.ts";
import { endOfString, isBounded } from "../pi/structure.ts";
import type { StoredEntry } from "./stored-entries.ts";

const { wholeTextBytes, shownTextBytes, maxPageEntryBytes } = limits.transcript;
/** Above this size only beginnings of longer values are kept, and above the second one only short values near the root. */
const fullBytes = maxPageEntryBytes - 48 * 1024;
const shortenedBytes = maxPageEntryBytes - 16 * 1024;
const shortBytes = 256;
/** What a cut takes in an answer, in addition to its path. */
const cutBytes = 160;
const maxPathLength = 2_048;
/** Deeper values are left out. pi writes about ten levels. */
const maxDepth = 128;

type Cut = Omit<TranscriptCut, "entryId" | "place">;

/** An entry without its long texts. */
export interface CutEntry {
  readonly entry: StoredEntry;
  readonly cuts: readonly Cut[];
  /** The entry and its cuts, as JSON. */
  readonly bytes: number;
}

/** A value within the line of an entry; of a string what is between its quotes. */
export interface ValueRange {
  readonly start: number;
  readonly end: number;
  readonly isString: boolean;
}

/** Leaves out what is long, without parsing it. Undefined: the line is not a JSON object. */
export function cutEntry(line: Buffer): CutEntry | undefined {
  try {
    // Nothing in it is long, but it may be nested too deeply.
    if (line.length <= wholeTextBytes && isBounded(line)) return cutOf(line.toString("utf8"), []);
    const cutter = new Cutter(line);
    return cutOf(cutter.text(), cutter.cuts);
  } catch {
    return undefined;
  }
}

function cutOf(text: string, cuts: readonly Cut[]): CutEntry | undefined {
  const entry: unknown = JSON.parse(text);
  if (!isRecord(entry)) return undefined;
  return { entry, cuts, bytes: cuts.reduce((sum, { path }) => sum + cutBytes + path.length, Buffer.byteLength(text)) };
}

/** The value at a JSON pointer. Undefined: there is none, or the line is not JSON. */
export function valueAt(line: Buffer, path: string): ValueRange | undefined {
  try {
    const start = skipSpace(line, 0);
    let range: ValueRange | undefined = { start, end: endOfValue(line, start), isString: false };
    for (const token of path.split("/").slice(1)) {
      const key = token.replaceAll("~1", "/").replaceAll("~0", "~");
      range = range.isString ? undefined : memberOf(line, range.start, key);
      if (range === undefined) return undefined;
    }
    return range;
  } catch {
    return undefined;
  }
}

/**
 * The last place, at most `limit`, at which the text of a JSON string may end: not within an escape, a character or a
 * pair of surrogates. The text begins at `from`.
 */
export function boundaryBefore(line: Buffer, from: number, limit: number): number {
  const shown = line.subarray(0, limit);
  let at = from;
  for (let sign = shown.indexOf(backslash, at); sign !== -1; sign = shown.indexOf(backslash, at)) {
    const isUnicode = line[sign + 1] === 0x75;
    const isPair = isUnicode && /^\\u[dD][89abAB]..\\u/.test(line.toString("latin1", sign, sign + 8));
    const end = sign + (isPair ? 12 : isUnicode ? 6 : 2);
    if (end > limit) return sign;
    at = end;
  }
  let end = limit;
  while (end > at && ((line[end] ?? 0) & 0xc0) === 0x80) end -= 1;
  return end;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBrace = 0x7b;
const closeBrace = 0x7d;
const openBracket = 0x5b;
const closeBracket = 0x5d;

/** These fields of an entry are always kept. */
const places: ReadonlySet<string> = new Set(["type", "id", "parentId", "timestamp"]);

/** What is left out of a line. */
interface Edit {
  readonly start: number;
  readonly end: number;
  readonly text: "" | ",";
}

interface Place {
  readonly path: string;
  /** Undefined in an array. */
  readonly key: string | undefined;
  readonly depth: number;
}

/** What becomes of a value. `open`: its members are looked at one by one. */
type Plan =
  | { readonly kind: "whole"; readonly end: number }
  | { readonly kind: "leftOut"; readonly end: number }
  | { readonly kind: "shortened"; readonly end: number; readonly shown: number }
  | { readonly kind: "open" };

/** Reads a line once, and collects what to leave out. Throws for what is not JSON. */
class Cutter {
  readonly cuts: Cut[] = [];
  readonly #line: Buffer;
  readonly #edits: Edit[] = [];
  #kept = 0;

  constructor(line: Buffer) {
    this.#line = line;
  }

  text(): string {
    const start = skipSpace(this.#line, 0);
    if (this.#line[start] !== openBrace) throw new SyntaxError("not an object");
    this.#container(start, { path: "", key: undefined, depth: 0 });
    const parts: string[] = [];
    let from = 0;
    for (const edit of this.#edits) {
      parts.push(this.#line.toString("utf8", from, edit.start), edit.text);
      from = edit.end;
    }
    parts.push(this.#line.toString("utf8", from));
    return parts.join("");
  }

  /** Returns where the container ends. */
  #container(start: number, { path, depth }: Place): number {
    const line = this.#line;
    let keptEnd = start + 1;
    let isFirst = true;
    let isComplete = true;
    const end = eachMember(line, start, (memberStart, valueStart, key, index) => {
      const place = { path: `${path}/${tokenOf(key ?? String(index))}`, key, depth: depth + 1 };
      // The indices of what is kept stay right.
      const isAfterGap = key === undefined && !isComplete;
      const plan: Plan = isAfterGap
        ? { kind: "leftOut", end: endOfValue(line, valueStart) }
        : this.#plan(valueStart, place);
      if (plan.kind === "leftOut") {
        isComplete = false;
        return plan.end;
      }
      if (!isComplete) this.#leaveOut(keptEnd, memberStart, isFirst ? "" : ",");
      isFirst = false;
      keptEnd = this.#take(valueStart, place, plan);
      return keptEnd;
    });
    if (!isComplete) {
      this.#leaveOut(keptEnd, end - 1, "");
      this.cuts.push({ path, bytes: end - start, shown: 0 });
    }
    return end;
  }

  #plan(at: number, { path, key, depth }: Place): Plan {
    const line = this.#line;
    const name = (key?.length ?? 0) + 4;
    const canCut = path.length <= maxPathLength;
    const cut = cutBytes + path.length;
    if (isOpening(line[at])) {
      if (canCut && depth < maxDepth && this.#has(name, fullBytes)) return { kind: "open" };
      const end = endOfValue(line, at);
      return canCut && end - at > shortBytes && this.#has(name + cut, shortenedBytes)
        ? { kind: "shortened", end, shown: 0 }
        : { kind: "leftOut", end };
    }
    const end = endOfValue(line, at);
    const length = end - at;
    if (depth === 1 && key !== undefined && places.has(key) && length <= 1_024) return { kind: "whole", end };
    const isString = line[at] === quote;
    if (isString && length - 2 > wholeTextBytes) {
      // A part of an image shows nothing.
      const shown = key === "data" ? 0 : boundaryBefore(line, at + 1, at + 1 + shownTextBytes) - at - 1;
      if (canCut && this.#has(name + cut + shown, fullBytes)) return { kind: "shortened", end, shown };
    } else {
      const limit = depth <= 2 && length <= shortBytes ? maxPageEntryBytes : fullBytes;
      if (this.#has(name + length, limit)) return { kind: "whole", end };
    }
    if (isString && length > shortBytes && canCut && this.#has(name + cut, shortenedBytes)) {
      return { kind: "shortened", end, shown: 0 };
    }
    return { kind: "leftOut", end };
  }

  /** Returns where the value ends. */
  #take(start: number, place: Place, plan: Exclude<Plan, { readonly kind: "leftOut" }>): number {
    if (plan.kind === "open") return this.#container(start, place);
    const { end } = plan;
    if (plan.kind === "whole") return end;
    const isString = this.#line[start] === quote;
    this.#leaveOut(start + 1 + plan.shown, end - 1, "");
    this.cuts.push({ path: place.path, bytes: isString ? end - start - 2 : end - start, shown: plan.shown });
    return end;
  }

  #leaveOut(start: number, end: number, text: Edit["text"]): void {
    this.#edits.push({ start, end, text });
  }

  #has(bytes: number, limit: number): boolean {
    if (this.#kept + bytes > limit) return false;
    this.#kept += bytes;
    return true;
  }
}

/** Calls back for each member of an object or an array; the callback returns where its value ends. Returns the end. */
function eachMember(
  line: Buffer,
  start: number,
  member: (memberStart: number, valueStart: number, key: string | undefined, index: number) => number,
): number {
  const isArray = line[start] === openBracket;
  const close = isArray ? closeBracket : closeBrace;
  let at = skipSpace(line, start + 1);
  for (let index = 0; line[at] !== close; index += 1) {
    const memberStart = at;
    let key: string | undefined;
    if (!isArray) {
      const keyEnd = endOfText(line, at);
      key = keyIn(line, at, keyEnd);
      at = skipSpace(line, keyEnd);
      if (line[at] !== colon) throw new SyntaxError("a member has no value");
      at = skipSpace(line, at + 1);
    }
    at = skipSpace(line, member(memberStart, at, key, index));
    if (line[at] === comma) at = skipSpace(line, at + 1);
    else if (line[at] !== close) throw new SyntaxError("a value is not followed by another");
  }
  return at + 1;
}

function memberOf(line: Buffer, start: number, wanted: string): ValueRange | undefined {
  if (!isOpening(line[start])) return undefined;
  let found: ValueRange | undefined;
  eachMember(line, start, (_member, valueStart, key, index) => {
    const end = endOfValue(line, valueStart);
    // Of members with the same name the last counts, as in a parser.
    if ((key ?? String(index)) === wanted) {
      const isString = line[valueStart] === quote;
      found = isString ? { start: valueStart + 1, end: end - 1, isString } : { start: valueStart, end, isString };
    }
    return end;
  });
  return found;
}

/** Where a value ends. Throws if it does not. */
function endOfValue(line: Buffer, start: number): number {
  if (line[start] === quote) return endOfText(line, start);
  let depth = 0;
  let at = start;
  for (; at < line.length; at += 1) {
    const byte = line[at];
    if (byte === quote) at = endOfText(line, at) - 1;
    else if (isOpening(byte)) depth += 1;
    else if (byte === closeBrace || byte === closeBracket) {
      if (depth === 0) break;
      depth -= 1;
      if (depth === 0) return at + 1;
    } else if (depth === 0 && (byte === comma || isSpace(byte))) break;
  }
  if (depth > 0 || at === start) throw new SyntaxError("a value does not end");
  return at;
}

/** The end of a string that begins with its quote. */
function endOfText(line: Buffer, start: number): number {
  const end = line[start] === quote ? endOfString(line, start + 1, line.length) : line.length;
  if (end >= line.length) throw new SyntaxError("a string does not end");
  return end + 1;
}

function keyIn(line: Buffer, start: number, end: number): string {
  const raw = line.toString("utf8", start + 1, end - 1);
  return raw.includes("\\") ? String(JSON.parse(`"${raw}"`)) : raw;
}

function tokenOf(key: string): string {
  return key.replaceAll("~", "~0").replaceAll("/", "~1");
}

function skipSpace(line: Buffer, start: number): number {
  let at = start;
  while (isSpace(line[at])) at += 1;
  return at;
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x09 || byte === 0x0d || byte === 0x0a;
}

function isOpening(byte: number | undefined): boolean {
  return byte === openBrace || byte === openBracket;
}
