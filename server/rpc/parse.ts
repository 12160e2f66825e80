import { isUtf8 } from "node:buffer";
import sjson from "secure-json-parse";
import { WireError } from "../../protocol/errors.ts";

/** The text of secure-json-parse's error, in full: V8's own messages may quote what they have read. */
const forbiddenKey = "Object contains forbidden prototype property";

const quote = 0x22;
const comma = 0x2c;
const colon = 0x3a;
const backslash = 0x5c;
const openBracket = 0x5b;
const openBrace = 0x7b;
const closeBracket = 0x5d;
const closeBrace = 0x7d;

export interface JsonLimits {
  /** A value that is nested deeper cannot be written again. */
  readonly maxNestingDepth: number;
  /**
   * Commas, colons and opening brackets outside strings. A million keys take two seconds to read (16 MiB of empty objects as
   * long, and 300 MB of memory), in which nobody else is served.
   */
  readonly maxJsonParts: number;
}

/**
 * JSON of a stranger. Throws `parse_error` for what is no JSON or no UTF-8, `invalid_request` for what exceeds the limits and
 * for the keys that would reach a prototype.
 */
export function parseJson(text: Buffer, limits: JsonLimits): unknown {
  refuseStructure(text, limits);
  // Otherwise the bytes that are none would silently become U+FFFD.
  if (!isUtf8(text)) throw new WireError("parse_error", "The text is not UTF-8.");
  try {
    return sjson.parse(text.toString("utf8"), undefined, { protoAction: "error", constructorAction: "error" });
  } catch (cause) {
    if (cause instanceof Error && cause.message === forbiddenKey) {
      throw new WireError(
        "invalid_request",
        "The JSON holds a key that is not allowed (__proto__, constructor.prototype).",
        {},
        { cause },
      );
    }
    throw new WireError("parse_error", "The text is not JSON.", {}, { cause });
  }
}

/** Counts brackets, commas and colons outside strings, in one pass over the bytes. */
function refuseStructure(text: Buffer, { maxNestingDepth, maxJsonParts }: JsonLimits): void {
  if (text.length <= Math.min(maxNestingDepth, maxJsonParts)) return;
  let depth = 0;
  let parts = 0;
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const byte = text[i];
    if (inString) {
      if (byte === backslash) i += 1;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if (byte === closeBrace || byte === closeBracket) depth -= 1;
    else if (byte === openBrace || byte === openBracket) {
      depth += 1;
      parts += 1;
    } else if (byte === comma || byte === colon) parts += 1;
    if (depth > maxNestingDepth) throw tooDeep(maxNestingDepth);
    if (parts > maxJsonParts) throw tooManyParts(maxJsonParts);
  }
}

function tooDeep(maxDepth: number): WireError {
  return new WireError("invalid_request", `The JSON is nested deeper than ${maxDepth}.`, { maxDepth });
}

function tooManyParts(maxJsonParts: number): WireError {
  const why = `The JSON has more than ${maxJsonParts} keys, values and commas.`;
  return new WireError("invalid_request", why, { maxJsonParts });
}
