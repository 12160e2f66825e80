/** `JSON.stringify` overflows the stack at about 4,000 levels. No tool needs more than this. */
const maxDepth = 200;

/** A value from a model, to be sent as it is. Undefined: it is nested too deeply to be sent. */
export function rawValue(value: unknown): unknown {
  return isWithin(value, maxDepth) ? value : undefined;
}

function isWithin(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((part) => isWithin(part, depth - 1));
}

/**
 * A string or a number as text, anything else as none. `String()` throws for an object whose `toString` is a value of
 * JSON.
 */
export function wordOf(value: unknown): string {
  return typeof value === "string" || typeof value === "number" ? String(value) : "";
}
