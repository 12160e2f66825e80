import { realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

/** The real path of a file. The part that does not exist stays as it is. */
export async function withoutLinks(file: string): Promise<string> {
  try {
    return await realpath(file);
  } catch {
    const directory = dirname(file);
    return directory === file ? file : join(await withoutLinks(directory), basename(file));
  }
}
