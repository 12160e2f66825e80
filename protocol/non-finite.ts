/**
 * The JSON Pointer (RFC 6901) of the first number in a JSON value that is not finite, or undefined. JSON text can
 * contain one, such as `1e400`, which is parsed as Infinity and would be written as null.
 */
export function nonFiniteIn(value: unknown): string | undefined {
  const open: (readonly [path: string, value: unknown])[] = [["", value]];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const [path, inner] = next;
    if (typeof inner === "number" && !Number.isFinite(inner)) return path;
    if (typeof inner !== "object" || inner === null) continue;
    for (const [name, child] of Object.entries(inner)) {
      if (typeof child === "number" ? !Number.isFinite(child) : typeof child === "object") {
        open.push([`${path}/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`, child]);
      }
    }
  }
  return undefined;
}
