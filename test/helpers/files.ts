import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

// Reads directories in which a daemon runs. It removes files and directories there at any time, so what is gone when it
// is read is left out.

/** The regular files at any depth below a directory, by path. The directory itself must exist. */
export function filesBelow(directory: string): Map<string, Buffer> {
  const files = new Map<string, Buffer>();
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) {
      for (const [below, content] of unlessGone(() => filesBelow(path)) ?? []) files.set(below, content);
    } else if (entry.isFile()) {
      const content = unlessGone(() => readFileSync(path));
      if (content !== undefined) files.set(path, content);
    }
  }
  return files;
}

/** The paths of the files below a directory that contain a text. */
export function filesWith(directory: string, text: string): string[] {
  const files = [...filesBelow(directory)];
  // A check that a text is in no file must not succeed because there is none.
  if (files.length === 0) throw new Error(`There is no file below ${directory}.`);
  return files.filter(([, content]) => content.includes(text)).map(([path]) => path);
}

function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
