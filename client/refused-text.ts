import type { ErrorData } from "../protocol/errors.ts";

const quote = 0x22;
const backslash = 0x5c;

/**
 * Whether the daemon refuses this text, before it reads it, with an error of this data. Such an answer has no id: the error
 * only names the exceeded limit.
 */
export function isRefusedFor(text: string, data: ErrorData): boolean {
  const { maxDepth, maxJsonParts, maxObjectKeys } = data;
  if ([maxDepth, maxJsonParts, maxObjectKeys].every((limit) => limit === undefined)) return hasForbiddenKey(text);
  const shape = shapeOf(text);
  return shape.depth > limitOf(maxDepth) || shape.parts > limitOf(maxJsonParts) || shape.keys > limitOf(maxObjectKeys);
}

function limitOf(limit: unknown): number {
  return typeof limit === "number" ? limit : Number.POSITIVE_INFINITY;
}

/** The key may also be inside a string: no other message is refused without naming a limit. */
function hasForbiddenKey(text: string): boolean {
  return text.includes('"__proto__"') || (text.includes('"constructor"') && text.includes('"prototype"'));
}

interface Shape {
  depth: number;
  /** Commas, colons and opening brackets outside of strings. */
  parts: number;
  /** The keys of the object with the most keys. */
  keys: number;
}

function shapeOf(text: string): Shape {
  const shape: Shape = { depth: 0, parts: 0, keys: 0 };
  const open: number[] = [];
  let inString = false;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (inString) {
      if (unit === backslash) i += 1;
      else if (unit === quote) inString = false;
    } else if (unit === quote) inString = true;
    else count(text[i] as string, shape, open);
  }
  return shape;
}

/** Counts one character outside of strings. `open` has the number of keys of each open object. */
function count(character: string, shape: Shape, open: number[]): void {
  switch (character) {
    case "{":
    case "[":
      open.push(0);
      shape.depth = Math.max(shape.depth, open.length);
      break;
    case "}":
    case "]":
      open.pop();
      return;
    case ":": {
      const keys = (open.pop() ?? 0) + 1;
      open.push(keys);
      shape.keys = Math.max(shape.keys, keys);
      break;
    }
    case ",":
      break;
    default:
      return;
  }
  shape.parts += 1;
}
