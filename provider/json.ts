export type JsonObject = Readonly<Record<string, unknown>>;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The objects in a list; whatever else is in it is left out, and what is no list is an empty one. */
export function objectsOf(value: unknown): readonly JsonObject[] {
  return Array.isArray(value) ? value.filter(isObject) : [];
}

export function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The parsed text, or the text itself when it is no JSON. */
export function parsedOrText(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Whether every text in parsed JSON is Unicode, keys too: servers' parsers refuse a lone surrogate, JavaScript's does not. */
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
