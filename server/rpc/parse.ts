import { isUtf8 } from "node:buffer";
import sjson from "secure-json-parse";
import { WireError } from "../../protocol/errors.ts";

/** The full text of secure-json-parse's error. V8's own messages may quote the input. */
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
  /** `JSON.stringify` fails on a value that is nested much deeper. */
  readonly maxNestingDepth: number;
  /**
   * Commas, colons and opening brackets outside strings. Parsing a million keys blocks the event loop for two seconds; so
   * do 16 MiB of empty objects, which also take 300 MB of memory.
   */
  readonly maxJsonParts: number;
  /** In one object. Listing a hundred thousand keys takes half a second, and every reader of the object does it. */
  readonly maxObjectKeys: number;
}

/**
 * Parses untrusted JSON. Throws `parse_error` if it is not valid JSON or not valid UTF-8, `invalid_request` if it exceeds
 * the limits or has keys that would reach a prototype.
 */
export function parseJson(text: Buffer, limits: JsonLimits): unknown {
  refuseStructure(text, limits);
  // Decoding would silently replace invalid bytes with U+FFFD.
  if (!isUtf8(text)) throw new WireError("parse_error", "The text is not valid UTF-8.");
  try {
    return sjson.parse(text.toString("utf8"), undefined, { protoAction: "error", constructorAction: "error" });
  } catch (cause) {
    if (cause instanceof Error && cause.message === forbiddenKey) {
      throw new WireError(
        "invalid_request",
        "The JSON has a key that is not allowed (__proto__, constructor.prototype).",
        {},
        { cause },
      );
    }
    throw new WireError("parse_error", "The text is not JSON.", {}, { cause });
  }
}

/** Counts brackets, commas and colons outside strings, in one pass over the bytes. */
function refuseStructure(text: Buffer, limits: JsonLimits): void {
  const { maxNestingDepth, maxJsonParts, maxObjectKeys } = limits;
  if (text.length <= Math.min(maxNestingDepth, maxJsonParts, maxObjectKeys)) return;
  const structure = structureOf(limits);
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const byte = text[i] as number;
    if (inString) {
      if (byte === backslash) i += 1;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else structure.look(byte);
  }
}

/** One for each set of limits, because allocating its array takes longer than checking a short text. */
const structures = new WeakMap<JsonLimits, Structure>();

function structureOf(limits: JsonLimits): Structure {
  const structure = structures.get(limits) ?? new Structure(limits);
  structures.set(limits, structure);
  structure.begin();
  return structure;
}

/** Depth and number of parts of a text. */
class Structure {
  readonly #limits: JsonLimits;
  /** Number of keys of each open object, by depth. */
  readonly #keys: Uint32Array;
  #depth = 0;
  #parts = 0;

  constructor(limits: JsonLimits) {
    this.#limits = limits;
    this.#keys = new Uint32Array(limits.maxNestingDepth + 1);
  }

  /** Resets the counts for another text. */
  begin(): void {
    this.#keys.fill(0);
    this.#depth = 0;
    this.#parts = 0;
  }

  /** Counts a byte outside strings. Throws if a limit is exceeded. */
  look(byte: number): void {
    switch (byte) {
      case openBrace:
      case openBracket:
        this.#begin();
        break;
      case closeBrace:
      case closeBracket:
        this.#depth -= 1;
        return;
      case colon:
        this.#key();
        break;
      case comma:
        break;
      default:
        return;
    }
    this.#parts += 1;
    if (this.#parts > this.#limits.maxJsonParts) throw tooManyParts(this.#limits.maxJsonParts);
  }

  #begin(): void {
    this.#depth += 1;
    if (this.#depth > this.#limits.maxNestingDepth) throw tooDeep(this.#limits.maxNestingDepth);
    this.#keys[this.#depth] = 0;
  }

  /** Invalid JSON can contain keys outside any object. */
  #key(): void {
    const count = (this.#keys[this.#depth] ?? 0) + 1;
    if (count > this.#limits.maxObjectKeys) throw tooManyKeys(this.#limits.maxObjectKeys);
    this.#keys[this.#depth] = count;
  }
}

function tooDeep(maxDepth: number): WireError {
  return new WireError("invalid_request", `The JSON is nested deeper than ${maxDepth}.`, { maxDepth });
}

function tooManyKeys(maxObjectKeys: number): WireError {
  return new WireError("invalid_request", `An object of the JSON has more than ${maxObjectKeys} keys.`, {
    maxObjectKeys,
  });
}

function tooManyParts(maxJsonParts: number): WireError {
  const why = `The JSON has more than ${maxJsonParts} keys, values and commas.`;
  return new WireError("invalid_request", why, { maxJsonParts });
}
