import { isAbsolute, join } from "node:path";
import { makePrivateDirectory } from "../lib/private-directory.ts";

/**
 * Where a pi caches compiled code. Node and jiti, which pi uses to load TypeScript extensions, put it into the
 * directory for temporary files, and execute what they find there without checking its owner.
 */
export interface CodeCaches {
  /** A directory that only this user can write. Undefined: there is none, and no code is cached. */
  readonly directory: string | undefined;
  /** Variables that the environment of a pi must have while it loads its extensions. */
  readonly env: Readonly<Record<string, string>>;
  /** Why there is no directory. */
  readonly problem?: string;
}

/** Checked at each start of a pi: the directory may be deleted and recreated while the daemon runs. */
export function codeCaches(env: NodeJS.ProcessEnv): CodeCaches {
  try {
    const directory = makePrivateDirectory(join(cacheHome(env), "pi-rpcd", "pi"));
    return {
      directory,
      // jiti has no option for the path: its cache is in the directory for temporary files, and with the third
      // variable also if that is the working directory.
      env: { TMPDIR: directory, NODE_COMPILE_CACHE: join(directory, "node"), JITI_RESPECT_TMPDIR_ENV: "1" },
    };
  } catch (error) {
    return {
      directory: undefined,
      env: { NODE_DISABLE_COMPILE_CACHE: "1", JITI_FS_CACHE: "false" },
      problem: error instanceof Error ? error.message : String(error),
    };
  }
}

function cacheHome({ XDG_CACHE_HOME: cacheHome, HOME: home }: NodeJS.ProcessEnv): string {
  if (cacheHome !== undefined && isAbsolute(cacheHome)) return cacheHome;
  if (home !== undefined && isAbsolute(home)) return join(home, ".cache");
  throw new Error("neither XDG_CACHE_HOME nor HOME is an absolute path");
}
