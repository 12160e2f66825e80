import { join } from "node:path";
import { referencePage } from "../server/edge/reference-page.ts";
import { cacheDirectory, makePrivateDirectory } from "../server/lib/private-directory.ts";
import { writePrivate } from "../server/lib/private-file.ts";
import { CommandError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { openInBrowser } from "./open-in-browser.ts";
import { packageVersion } from "./version.ts";

/** Writes the reference of the protocol to a private file, and opens it in the browser if a person is there to read it. */
export async function docs({ output, env }: Invocation<"docs">): Promise<number> {
  const directory = cacheDirectory(env);
  if (directory === undefined)
    throw new CommandError(
      "no_cache_directory",
      "Cannot write the reference: set HOME or XDG_CACHE_HOME to an absolute path.",
    );
  const path = join(makePrivateDirectory(directory), "reference.html");
  writePrivate(path, referencePage(packageVersion()));
  const opened = output.isTerminal && (await openInBrowser(path, env));
  if (output.json) output.document({ path, opened });
  else output.print(path);
  return exitCodes.done;
}
