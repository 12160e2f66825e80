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

/**
 * A string is scanned byte by byte for this many bytes, then with `indexOf`: much faster in long text, and slower if
 * quotes are near (measured: 32 and 64 cost a fifth and a tenth more in escaped source code, 256 gains nothing).
 */
const nearBytes = 128;

/** Where {@link scan} is in a record. */
export interface ScanState {
  at: number;
  isInString: boolean;
  depth: number;
  /** The open brackets, outermost first. */
  readonly open: Uint8Array;
}

export function scanState(): ScanState {
  return { at: 0, isInString: false, depth: 0, open: new Uint8Array(MAX_DEPTH) };
}

/** Kept between calls, so that a call allocates nothing. */
const whole = scanState();

/**
 * Whether strings are closed, brackets are balanced and match, and the outermost pair is an object's and encloses all
 * bytes. Other syntax is not checked: a parser that accepts the bytes finds the end at the last byte. One pass; it
 * runs for each streamed delta.
 */
export function isOneObject(record: Buffer): boolean {
  whole.at = 0;
  whole.isInString = false;
  whole.depth = 0;
  return scan(record, whole, record.length) === true;
}

/**
 * {@link isOneObject} in steps: looks at the bytes up to `limit`, and continues there when called again with the same
 * state. Undefined: more bytes must be scanned.
 */
export function scan(record: Buffer, state: ScanState, limit: number): boolean | undefined {
  const { open } = state;
  const { length } = record;
  let { at, depth } = state;
  if (at === 0) {
    if (!isEnclosed(record)) return false;
    open[0] = openBrace;
    depth = 1;
    at = 1;
  } else if (state.isInString) {
    at = endOfString(record, at, limit) + 1;
    if (at > limit) return unfinished(state, at - 1, length);
    state.isInString = false;
  }
  for (; at < limit; at += 1) {
    const byte = record[at] as number;
    if (byte === quote) {
      at = endOfString(record, at + 1, limit);
      if (at >= limit) {
        state.isInString = true;
        state.depth = depth;
        return unfinished(state, at, length);
      }
    } else if ((byte | braceBit) === openBrace) {
      if (depth === MAX_DEPTH) return false;
      open[depth] = byte;
      depth += 1;
    } else if ((byte | braceBit) === closeBrace) {
      depth -= 1;
      if (open[depth] !== byte - 2) return false;
      if (depth === 0) return at === length - 1;
    }
  }
  state.depth = depth;
  return unfinished(state, at, length);
}

function isEnclosed(record: Buffer): boolean {
  return record.length >= 2 && record[0] === openBrace && record[record.length - 1] === closeBrace;
}

/** A scan that has not found the end of the object. */
function unfinished(state: ScanState, at: number, length: number): false | undefined {
  state.at = at;
  return at >= length ? false : undefined;
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
    if (byte === quote) i = endOfString(json, i + 1, length);
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
 * The position of the closing quote of the string that continues at `from`, where no escape is cut. Without one before
 * `limit`: where the string continues, at `limit` or after the escape there.
 */
export function endOfString(record: Buffer, from: number, limit: number): number {
  let i = from;
  for (;;) {
    const near = Math.min(i + nearBytes, limit);
    while (i < near) {
      const byte = record[i] as number;
      if (byte === quote) return i;
      i += byte === backslash ? 2 : 1;
    }
    if (i >= limit) return i;
    const found = (limit === record.length ? record : record.subarray(0, limit)).indexOf(quote, i);
    const at = found === -1 ? limit : found;
    let first = at;
    while (first > i && record[first - 1] === backslash) first -= 1;
    const isEscaped = (at - first) % 2 === 1;
    if (found === -1) return isEscaped ? limit + 1 : limit;
    if (!isEscaped) return at;
    i = at + 1;
  }
}
