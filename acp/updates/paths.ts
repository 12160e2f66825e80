import { resolve } from "node:path";
import { fileURLToPath } from "node:url";

/** Where the tools of a session run. */
export interface ToolPlace {
  /** The session's working directory, an absolute path. */
  readonly cwd: string;
  /** What `~` means to the session's pi. Default: paths with `~` are left as they are. */
  readonly home?: string;
}

/** The longest path that Linux opens, in characters. A model can give longer ones. */
const maxPathChars = 4096;

/**
 * The absolute path of a tool's argument, by the rules of pi's own tools (`resolveToCwd` in its `path-utils.js`).
 * Undefined: it is not a path.
 */
export function absolutePath(path: unknown, { cwd, home }: ToolPlace): string | undefined {
  if (typeof path !== "string" || path === "" || path.length > maxPathChars) return undefined;
  const plain = path.replace(/[\u00A0\u2000-\u200A\u202F\u205F\u3000]/g, " ").replace(/^@/, "");
  if (home !== undefined && (plain === "~" || plain.startsWith("~/"))) return resolve(home, plain.slice(2));
  return resolve(cwd, localPath(plain) ?? plain);
}

/** The path and the fragment of a `file:` URI. Undefined: it is another URI, or its file is on another host. */
export function fileOf(uri: string): { readonly path: string; readonly fragment: string } | undefined {
  const [address = "", ...fragment] = uri.split("#");
  const path = localPath(address);
  return path === undefined ? undefined : { path, fragment: fragment.join("#") };
}

function localPath(uri: string): string | undefined {
  if (!/^file:\/\//i.test(uri)) return undefined;
  try {
    return fileURLToPath(uri);
  } catch {
    return undefined;
  }
}
