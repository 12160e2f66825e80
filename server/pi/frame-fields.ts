/** Checks of a frame's fields. A frame is untrusted input: each field is checked before it is used. */

export type Fields = Readonly<Record<string, unknown>>;
/** The allowed values of a field, as own keys. */
export type Words<T extends string> = Readonly<Record<T, true>>;

/** A session holds far fewer pushes. */
export const maxIds = 10_000;
const maxErrorLength = 1_024;
const idPattern = /^[0-9A-Za-z][0-9A-Za-z._:-]{0,127}$/;

export function isIds(value: unknown): value is readonly string[] {
  return isListOf(value, isId);
}

/** By index, because `every` skips holes. */
export function isListOf(value: unknown, is: (item: unknown) => boolean): boolean {
  if (!Array.isArray(value) || value.length > maxIds) return false;
  for (let i = 0; i < value.length; i += 1) if (!is(value[i])) return false;
  return true;
}

export function isPlain(value: unknown): value is Fields {
  if (typeof value !== "object" || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

export function isId(value: unknown): value is string {
  return isString(value) && idPattern.test(value);
}

export function isWord<T extends string>(words: Words<T>, value: unknown): value is T {
  return isString(value) && Object.hasOwn(words, value);
}

export function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value);
}

export function isString(value: unknown): value is string {
  return typeof value === "string";
}

export function isBoolean(value: unknown): value is boolean {
  return typeof value === "boolean";
}

/** A cut can split a surrogate pair, which would make the text invalid. */
export function cut(text: string): string {
  return text.length <= maxErrorLength ? text : text.slice(0, maxErrorLength).toWellFormed();
}
