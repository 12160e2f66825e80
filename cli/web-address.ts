import { randomBytes } from "node:crypto";
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory, makePrivateDirectory } from "../server/lib/private-directory.ts";
import { writePrivate } from "../server/lib/private-file.ts";

/** A private file that leads a browser to an address. */
export interface AddressFile {
  readonly path: string;
  /** Can be called several times. */
  remove(): void;
}

/** No code is valid for so long. */
const leftAfterMs = 600_000;

/**
 * Writes the address into a file that only this user can read, because other users see the arguments of a browser. Files
 * that killed commands have left are removed. Throws if there is no private directory.
 */
export function writeAddressFile(address: string, env: NodeJS.ProcessEnv): AddressFile {
  const cache = cacheDirectory(env);
  if (cache === undefined) throw new Error("set HOME or XDG_CACHE_HOME to an absolute path");
  const directory = makePrivateDirectory(join(makePrivateDirectory(cache), "web"));
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    const { mtimeMs = Date.now() } = statSync(path, { throwIfNoEntry: false }) ?? {};
    if (Date.now() - mtimeMs > leftAfterMs) rmSync(path, { force: true });
  }
  const path = join(directory, `${randomBytes(8).toString("hex")}.html`);
  const remove = (): void => {
    process.off("exit", remove);
    rmSync(path, { force: true });
  };
  // A second interrupt ends the process at once.
  process.on("exit", remove);
  writePrivate(path, page(address));
  return { path, remove };
}

/** The address has no character that HTML knows. */
function page(address: string): string {
  return `<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url=${address}">
<title>pi-rpcd</title>
<a href="${address}">Open the web console</a>
`;
}
