import { isObject } from "../../../extension/pi-types.ts";

/** A call with larger arguments than this is like no other. UTF-16 units of their JSON, values in them, and depth. */
const maxChars = 65_536;
const maxValues = 10_000;
const maxDepth = 32;

const known = new WeakMap<object, string | null>();

/** What two calls have in common that ask for the same. `undefined`: the arguments are too large, or none. */
export function callKey(tool: string, args: unknown): string | undefined {
  if (!isObject(args)) return undefined;
  const before = known.get(args);
  const json = before === undefined ? (canonical(args) ?? null) : before;
  known.set(args, json);
  return json === null ? undefined : `${tool} ${json}`;
}

/** As JSON with the keys in order, without what is null or undefined. */
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

/** `false`: it is too large. */
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
  // What is longer than all that is left need not be copied.
  if (typeof value === "string" && value.length > left.chars) return false;
  return put(JSON.stringify(value) ?? "null");
}
