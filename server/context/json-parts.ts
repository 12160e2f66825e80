import { WireError } from "../../protocol/errors.ts";

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;
const openBracket = 0x5b;
const openBrace = 0x7b;

/** Maximum memory for a byte of text, and for a part of one, while a document is built: measured, with a margin. */
const bytesPerByte = 6;
const bytesPerPart = 200;

/**
 * Maximum number of commas, colons and opening brackets outside strings, so that the work on a text has enough
 * memory.
 */
export function maxPartsIn(memoryBytes: number, textBytes: number): number {
  return Math.max(0, Math.floor((memoryBytes - textBytes * bytesPerByte) / bytesPerPart));
}

/**
 * Checks a text before it is parsed: a thread that runs out of memory can end the whole process. One pass over the
 * bytes. Throws `context_too_large`.
 */
export function refuseParts(text: Uint8Array, maxParts: number): void {
  let parts = 0;
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const byte = text[i];
    if (inString) {
      if (byte === backslash) i += 1;
      else if (byte === quote) inString = false;
    } else if (byte === quote) inString = true;
    else if (byte === comma || byte === colon || byte === openBracket || byte === openBrace) {
      parts += 1;
      if (parts > maxParts) throw tooManyParts(maxParts);
    }
  }
}

function tooManyParts(maxParts: number): WireError {
  const message = `The document has more than ${maxParts} keys, values and commas, which takes too much memory.`;
  return new WireError("context_too_large", message, { limit: "work", max: maxParts });
}
