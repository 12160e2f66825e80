/**
 * Whether bytes have the structure of one JSON object, without parsing them. A high-rate record is spliced into a
 * notification unchanged: one that closes its object early could write fields of the notification itself.
 */

const quote = 0x22;
const backslash = 0x5c;
const openBrace = 0x7b;
const closeBrace = 0x7d;
/** Setting this bit turns `[` and `]` into `{` and `}`. No other two bytes become these. */
const braceBit = 0x20;

/** Deeper records are refused: pi writes none, and some clients' parsers recurse. */
export const MAX_DEPTH = 512;

/** The open brackets, outermost first. Kept between calls, so that a call allocates nothing. */
const open = new Uint8Array(MAX_DEPTH);

/**
 * A string is scanned byte by byte for this many bytes, then with `indexOf`: much faster in long text, and slower if
 * quotes are near (measured: 32 and 64 cost a fifth and a tenth more in escaped source code, 256 gains nothing).
 */
const nearBytes = 128;

/**
 * Whether strings are closed, brackets are balanced and match, and the outermost pair is an object's and encloses all
 * bytes. Other syntax is not checked: a parser that accepts the bytes finds the end at the last byte. One pass; it
 * runs for each streamed delta.
 */
export function isOneObject(record: Buffer): boolean {
  const last = record.length - 1;
  if (last < 1 || record[0] !== openBrace || record[last] !== closeBrace) return false;
  open[0] = openBrace;
  let depth = 1;
  for (let i = 1; i <= last; i += 1) {
    const byte = record[i] as number;
    if (byte === quote) {
      i = endOfString(record, i + 1);
    } else if ((byte | braceBit) === openBrace) {
      if (depth === MAX_DEPTH) return false;
      open[depth] = byte;
      depth += 1;
    } else if ((byte | braceBit) === closeBrace) {
      depth -= 1;
      if (open[depth] !== byte - 2) return false;
      if (depth === 0) return i === last;
    }
  }
  return false;
}

/** Of a record, or an entry of a session file: brackets, commas and colons outside of strings. */
export const MAX_PARTS = 5_000_000;

const comma = 0x2c;
const colon = 0x3a;

/**
 * Whether `JSON.parse` may be given these bytes: not nested too deeply to be serialised, and not of so many parts
 * that the daemon would block for seconds (60 MB of empty objects take six, 60 MB of brackets twelve). One pass.
 */
export function isBounded(json: Buffer): boolean {
  const { length } = json;
  if (length <= MAX_DEPTH) return true;
  let depth = 0;
  let parts = 0;
  for (let i = 0; i < length; i += 1) {
    const byte = json[i] as number;
    if (byte === quote) i = endOfString(json, i + 1);
    else if ((byte | braceBit) === openBrace) {
      depth += 1;
      parts += 1;
      if (depth > MAX_DEPTH || parts > MAX_PARTS) return false;
    } else if ((byte | braceBit) === closeBrace) depth -= 1;
    else if (byte === comma || byte === colon) {
      parts += 1;
      if (parts > MAX_PARTS) return false;
    }
  }
  return true;
}

/** Like `JSON.parse`, and also throws for bytes that are not {@link isBounded}. */
export function parseBounded(json: Buffer): unknown {
  if (!isBounded(json)) throw new RangeError("The JSON is nested too deeply, or has too many parts.");
  return JSON.parse(json.toString("utf8"));
}

/**
 * The position of the closing quote of the string that begins at `from`. Without one: at or after the end of the
 * record.
 */
function endOfString(record: Buffer, from: number): number {
  const { length } = record;
  let i = from;
  for (;;) {
    const near = Math.min(i + nearBytes, length);
    while (i < near) {
      const byte = record[i] as number;
      if (byte === quote) return i;
      i += byte === backslash ? 2 : 1;
    }
    if (i >= length) return length;
    const at = record.indexOf(quote, i);
    if (at === -1) return length;
    let first = at;
    while (first > i && record[first - 1] === backslash) first -= 1;
    if ((at - first) % 2 === 0) return at;
    i = at + 1;
  }
}
