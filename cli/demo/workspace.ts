import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A directory of its own, with all that the demo or the doctor needs in it. */
export interface Workspace {
  readonly root: string;
  readonly stateDir: string;
  readonly cwd: string;
  readonly logFile: string;
  remove(): void;
}

/** The shortest limit of a Unix socket's path that there is, macOS's; what comes behind the directory's name fits too. */
const maxRootBytes = 103 - "/state/daemon.sock".length;

export function createWorkspace(name: string): Workspace {
  const inTmp = join(tmpdir(), name);
  // The directory for temporary files may be the user's own choice, and deep.
  const prefix = Buffer.byteLength(inTmp) + 6 > maxRootBytes ? join("/tmp", name) : inTmp;
  const root = mkdtempSync(prefix);
  const cwd = join(root, "project");
  const stateDir = join(root, "state");
  for (const directory of [cwd, stateDir]) mkdirSync(directory, { mode: 0o700 });
  return {
    root,
    stateDir,
    cwd,
    logFile: join(stateDir, "daemon.log"),
    remove: () => rmSync(root, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 }),
  };
}
