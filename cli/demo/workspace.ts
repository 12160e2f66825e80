import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A temporary directory with everything that the demo or the doctor needs. */
export interface Workspace {
  readonly root: string;
  readonly stateDir: string;
  readonly cwd: string;
  readonly logFile: string;
  remove(): void;
}

/** The shortest limit of a Unix socket's path, that of macOS; leaves room for the names inside the directory. */
const maxRootBytes = 103 - "/state/daemon.sock".length;

export function createWorkspace(name: string): Workspace {
  const inTmp = join(tmpdir(), name);
  // The user may have chosen a deep directory for temporary files.
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
