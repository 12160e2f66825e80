/** A JSON object with unchecked fields. */
export type Loose = Readonly<Record<string, unknown>>;

/** Measurements of a value. */
export interface Measured {
  /** UTF-8 bytes as JSON without white space, not counting escapes in texts. */
  readonly bytes: number;
  /** UTF-8 bytes of the longest text, field names excluded. */
  readonly longestText: number;
  /** Whether the value exceeds the allowed levels of objects and arrays; deeper values were not measured. */
  readonly isTooDeep: boolean;
  /** Whether the value contains something that JSON does not have, such as a function or a bigint. */
  readonly isForeign: boolean;
}

/** Measures a value, at most `levels` deep, so that neither depth nor a cycle can exhaust the stack. */
export function measure(value: unknown, levels: number): Measured {
  let bytes = 0;
  let longestText = 0;
  let isTooDeep = false;
  let isForeign = false;
  look(value, 0);
  return { bytes, longestText, isTooDeep, isForeign };

  function look(one: unknown, level: number): void {
    if (typeof one === "string") {
      const length = utf8Bytes(one);
      bytes += length + 2;
      if (length > longestText) longestText = length;
    } else if (typeof one === "number") bytes += String(one).length;
    else if (typeof one !== "object" || one === null) lookAtRest(one);
    else if (level >= levels) isTooDeep = true;
    else if (Array.isArray(one)) {
      bytes += one.length + 1;
      for (const element of one) look(element, level + 1);
    } else lookIntoObject(one as Loose, level);
  }

  function lookAtRest(one: unknown): void {
    bytes += 4;
    if (one !== null && one !== undefined && typeof one !== "boolean") isForeign = true;
  }

  function lookIntoObject(one: Loose, level: number): void {
    bytes += 1;
    for (const key of Object.keys(one)) {
      bytes += utf8Bytes(key) + 4;
      look(one[key], level + 1);
    }
  }
}

/** Whether a value has more levels of objects and arrays than `levels`. */
export function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((element) => isDeeperThan(element, levels - 1));
  return Object.keys(value).some((key) => isDeeperThan((value as Loose)[key], levels - 1));
}

/** Texts up to this length are counted inline, which is cheaper than a call. */
const shortText = 24;

export function utf8Bytes(text: string): number {
  if (text.length > shortText) return Buffer.byteLength(text);
  for (let index = 0; index < text.length; index += 1)
    if (text.charCodeAt(index) > 0x7f) return Buffer.byteLength(text);
  return text.length;
}

/** Sets a field of a new object. A field named `__proto__` stays a field. */
export function setField(target: Record<string, unknown>, key: string, value: unknown): void {
  if (key !== "__proto__") target[key] = value;
  else Object.defineProperty(target, key, { value, enumerable: true, configurable: true, writable: true });
}
