export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The objects in a list; other values are skipped, and a value that is not a list counts as empty. */
export function objectsOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** Returns the parsed text, or the text itself if it is not valid JSON. */
export function parsedOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * Whether every text in parsed JSON, also each key, is valid Unicode: servers' parsers refuse a lone surrogate,
 * JavaScript's does not.
 */
export function isWellFormed(value: unknown): boolean {
  const open = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === "string" && !next.isWellFormed()) return false;
    if (Array.isArray(next)) for (const element of next) open.push(element);
    else if (isObject(next)) for (const [key, element] of Object.entries(next)) open.push(key, element);
  }
  return true;
}
