import module from "node:module";
import { cacheDirectory, makePrivateDirectory } from "../server/lib/private-directory.ts";

/** Makes Node cache a built program for the next start, if a private directory is available. */
export function keepCompiled(): void {
  const folder = cacheDirectory(process.env);
  if (folder === undefined) return;
  try {
    // Node executes the cached code without checking its origin.
    module.enableCompileCache(makePrivateDirectory(`${folder}/compiled`));
  } catch {
    // Without a cache every start compiles the program.
  }
}
