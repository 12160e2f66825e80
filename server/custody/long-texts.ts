import { isRecord } from "../../protocol/objects.ts";
import type { TranscriptCut } from "../../protocol/transcript-methods.ts";
import { limits } from "../configuration/limits.ts";
import { endOfString, isBounded } from "../pi/structure.ts";
import type { Line } from "./entry-file.ts";
import type { StoredEntry } from "./stored-entries.ts";

const { wholeTextBytes, shownTextBytes, maxPageEntryBytes, maxEntryValues } = limits.transcript;
/** Above this size only beginnings of longer values are kept, and above the second one only short values near the root. */
const fullBytes = maxPageEntryBytes - 48 * 1024;
const shortenedBytes = maxPageEntryBytes - 16 * 1024;
const shortBytes = 256;
/** What a cut takes in an answer, in addition to its path. */
const cutBytes = 160;
const maxPathLength = 2_048;
/** Values up to this depth are near the root: the fields of an entry and of its message. */
const nearDepth = 2;
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

/** What is known of an entry before its line is looked at. */
interface KnownEntry {
  readonly id: string;
  readonly parentId: string | null;
}

/**
 * The entry of a line, without what is long. Only its type and its ids, if the line is too long to be read. Undefined:
 * the line is not a JSON object.
 */
export function cutLine({ start, end, bytes, head }: Line, known: KnownEntry): CutEntry | undefined {
  if (bytes === undefined) {
    const type = /^\{"type":"([a-z_]{1,64})"/.exec(head.toString("latin1", 0, 128))?.[1] ?? "unknown";
    const entry = { type, id: known.id, parentId: known.parentId };
    return { entry, cuts: [{ path: "", bytes: end - start, shown: 0 }], bytes: JSON.stringify(entry).length };
  }
  const cut = cutEntry(bytes);
  // The ids come last in what extensions store, after more fields than are looked at.
  return cut === undefined || cut.entry["id"] !== undefined ? cut : { ...cut, entry: { ...cut.entry, ...ids(known) } };
}

function ids({ id, parentId }: KnownEntry): KnownEntry {
  return { id, parentId };
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

/**
 * The value at a JSON pointer. Undefined: there is none among the values that are looked at, or the line is not JSON.
 */
export function valueAt(line: Buffer, path: string): ValueRange | undefined {
  const keys = path
    .split("/")
    .slice(1)
    .map((token) => token.replaceAll("~1", "/").replaceAll("~0", "~"));
  try {
    return new ValueSearch(line, keys).in(skipSpace(line, 0), 0).found;
  } catch {
    return undefined;
  }
}

/** Looks for a value. Each byte is looked at once, however deep the value is. */
class ValueSearch {
  readonly #line: Buffer;
  readonly #keys: readonly string[];
  /** As many as the {@link Cutter} looks at, so that each of its cuts is found. */
  readonly #values = { near: 0, deep: 0 };

  constructor(line: Buffer, keys: readonly string[]) {
    this.#line = line;
    this.#keys = keys;
  }

  /** `depth`: so many keys have led to the value at `start`. */
  in(start: number, depth: number): { readonly found: ValueRange | undefined; readonly end: number } {
    const line = this.#line;
    const wanted = this.#keys[depth];
    if (wanted === undefined || !isOpening(line[start])) {
      const end = endOfValue(line, start);
      const isString = line[start] === quote;
      const range = isString ? { start: start + 1, end: end - 1, isString } : { start, end, isString };
      return { found: wanted === undefined ? range : undefined, end };
    }
    let found: ValueRange | undefined;
    const level = levelOf(depth);
    const end = eachMember(line, start, (_member, valueStart, key, index) => {
      this.#values[level] += 1;
      if (this.#values[level] > maxEntryValues) return undefined;
      if ((key ?? String(index)) !== wanted) return endOfValue(line, valueStart);
      // Of members with the same name the last counts, as in a parser.
      const inside = this.in(valueStart, depth + 1);
      found = inside.found;
      return inside.end;
    });
    return { found, end };
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
/** Setting this bit turns brackets into braces. No other bytes become these. */
const braceBit = 0x20;

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

/** Where the members of a container are. `depth`: that of the container. */
function levelOf(depth: number): "near" | "deep" {
  return depth < nearDepth ? "near" : "deep";
}

/** Reads a line once, and collects what to leave out. Throws for what is not JSON. */
class Cutter {
  readonly cuts: Cut[] = [];
  readonly #line: Buffer;
  readonly #edits: Edit[] = [];
  /** How many values near the root, and below these, were looked at. */
  readonly #values = { near: 0, deep: 0 };
  #kept = 0;
  /** Whether the cuts say that the entry is not whole. */
  #isCut = false;

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
    const level = levelOf(depth);
    const end = eachMember(line, start, (memberStart, valueStart, key, index) => {
      this.#values[level] += 1;
      // The indices of what is kept stay right.
      const isAfterGap = key === undefined && !isComplete;
      if (isAfterGap || this.#values[level] > maxEntryValues) {
        isComplete = false;
        return undefined;
      }
      const place = { path: `${path}/${tokenOf(key ?? String(index))}`, key, depth: depth + 1 };
      const plan = this.#plan(valueStart, place);
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
      this.#cutContainer({ path, bytes: end - start, shown: 0 });
    }
    return end;
  }

  /** The cuts of too many containers would be longer than the entry: then the entry is cut. */
  #cutContainer(cut: Cut): void {
    if (cut.path !== "" && this.#has(cutBytes + cut.path.length, maxPageEntryBytes)) this.cuts.push(cut);
    else if (!this.#isCut) {
      this.#isCut = true;
      this.cuts.push({ path: "", bytes: this.#line.length, shown: 0 });
    }
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
      const limit = depth <= nearDepth && length <= shortBytes ? maxPageEntryBytes : fullBytes;
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

/**
 * Calls back for each member of an object or an array; the callback returns where its value ends, or undefined to pass
 * over this and all later members. Returns the end.
 */
function eachMember(
  line: Buffer,
  start: number,
  member: (memberStart: number, valueStart: number, key: string | undefined, index: number) => number | undefined,
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
    const end = member(memberStart, at, key, index);
    if (end === undefined) return endOfContainer(line, at);
    at = skipSpace(line, end);
    if (line[at] === comma) at = skipSpace(line, at + 1);
    else if (line[at] !== close) throw new SyntaxError("a value is not followed by another");
  }
  return at + 1;
}

/** Where a value ends. Throws if it does not. */
function endOfValue(line: Buffer, start: number): number {
  if (line[start] === quote) return endOfText(line, start);
  if (isOpening(line[start])) return endOfContainer(line, start + 1);
  let at = start;
  for (; at < line.length; at += 1) {
    const byte = line[at] as number;
    if (byte === comma || (byte | braceBit) === closeBrace || isSpace(byte)) break;
  }
  if (at === start) throw new SyntaxError("a value is missing");
  return at;
}

/** Where the object or array ends that is open at `from`. Throws if it does not. */
function endOfContainer(line: Buffer, from: number): number {
  const { length } = line;
  let depth = 1;
  for (let at = from; at < length; at += 1) {
    const byte = line[at] as number;
    if (byte === quote) at = endOfString(line, at + 1, length);
    else if ((byte | braceBit) === openBrace) depth += 1;
    else if ((byte | braceBit) === closeBrace) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  throw new SyntaxError("a value does not end");
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
