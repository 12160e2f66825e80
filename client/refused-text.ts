import type { ErrorData } from "../protocol/errors.ts";

const quote = 0x22;
const backslash = 0x5c;

/**
 * Whether this is a text that the daemon refuses with such an error before it reads it. It then knows no id to answer
 * under: the error says only which limit was exceeded.
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

/** It may stand in a text of the message, too: no other message is refused without a limit. */
function hasForbiddenKey(text: string): boolean {
  return text.includes('"__proto__"') || (text.includes('"constructor"') && text.includes('"prototype"'));
}

interface Shape {
  depth: number;
  /** Commas, colons and opening brackets outside of strings. */
  parts: number;
  /** Of the object that has most. */
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
    else look(text[i] as string, shape, open);
  }
  return shape;
}

/** `open` has the keys of each object that is open. */
function look(character: string, shape: Shape, open: number[]): void {
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
