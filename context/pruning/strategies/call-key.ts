import { isObject } from "../../../extension/pi-types.ts";

/** Calls with larger arguments never match. UTF-16 units of JSON, number of values, and depth. */
const maxChars = 65_536;
const maxValues = 10_000;
const maxDepth = 32;

const known = new WeakMap<object, string | null>();

/** A key that is equal for calls with equal arguments. `undefined`: the arguments are too large or not an object. */
export function callKey(tool: string, args: unknown): string | undefined {
  if (!isObject(args)) return undefined;
  const before = known.get(args);
  const json = before === undefined ? (canonical(args) ?? null) : before;
  known.set(args, json);
  return json === null ? undefined : `${tool} ${json}`;
}

/** JSON with sorted keys, without null and undefined values. */
function canonical(args: object): string | undefined {
  const left = { chars: maxChars, values: maxValues };
  const parts: string[] = [];
  return write(args, { parts, left, depth: 0 }) ? parts.join("") : undefined;
}

interface Writing {
  readonly parts: string[];
  readonly left: { chars: number; values: number };
  readonly depth: number;
}

/** Returns false if the value is too large. */
function write(value: unknown, { parts, left, depth }: Writing): boolean {
  left.values -= 1;
  if (left.values < 0 || depth > maxDepth) return false;
  const put = (text: string): boolean => {
    left.chars -= text.length;
    parts.push(text);
    return left.chars >= 0;
  };
  const inner: Writing = { parts, left, depth: depth + 1 };
  if (Array.isArray(value)) {
    return put("[") && value.every((one) => write(one ?? null, inner) && put(",")) && put("]");
  }
  if (isObject(value)) {
    const names = Object.keys(value)
      .filter((name) => value[name] !== undefined && value[name] !== null)
      .toSorted();
    return (
      put("{") && names.every((name) => put(JSON.stringify(name)) && write(value[name], inner) && put(",")) && put("}")
    );
  }
  // Skip the copy if the text exceeds the remaining budget.
  if (typeof value === "string" && value.length > left.chars) return false;
  return put(JSON.stringify(value) ?? "null");
}
