import { realpathSync } from "node:fs";
import { resolve } from "node:path";
import type { Logger } from "pino";
import { StartError } from "./lib/start-error.ts";
import { agentDirectoryOf } from "./pi/session-file.ts";
import { findSessionFile, textsIn } from "./pi/session-search.ts";
import type { StateDirectory } from "./state-directory.ts";
import { NewerStoreError } from "./store/migrations.ts";
import { checkStore, type OpenStore, openStore } from "./store/open-store.ts";

/**
 * Throws a {@link StartError} `store_too_new` or `store_unusable`. `endChildren` is awaited before a damaged store is
 * rebuilt, because what pi has done is then decided by its session files.
 */
export async function storeOf(
  state: StateDirectory,
  env: NodeJS.ProcessEnv,
  endChildren: () => Promise<void>,
  log: Logger,
): Promise<OpenStore> {
  const { store: path } = state;
  try {
    const found = checkStore(path);
    if (found.damage !== undefined) await endChildren();
    return openStore({
      path,
      found,
      isHeld: () => state.isHeld,
      log,
      findSession: (sessionId) => findSessionFile(sessionId, env),
      textsIn,
    });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    const kind = cause instanceof NewerStoreError ? "store_too_new" : "store_unusable";
    throw new StartError(kind, `The store ${path} cannot be opened: ${why}`, { cause });
  }
}

/** SQLite's result code for a full disk. */
const sqliteFull = 13;

/** Detects a full disk, which each part of a start reports differently. Returns other errors unchanged. */
export function namedStartError(error: unknown, stateDir: string): unknown {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const { code, errcode } = cause as NodeJS.ErrnoException & { readonly errcode?: number };
    if (code !== "ENOSPC" && code !== "EDQUOT" && (errcode ?? 0) % 256 !== sqliteFull) continue;
    const message = `The disk of the state directory ${stateDir} is full: ${cause.message}. Free some space on it, or choose another state directory with --state-dir.`;
    return new StartError("state_dir_unusable", message, { cause: error });
  }
  return error;
}

/** Throws a StartError `config_invalid` if the daemon's own pi configuration directory is the user's. */
export function requireOwnAgentDirectory(directory: string, env: NodeJS.ProcessEnv): void {
  const { PI_CODING_AGENT_DIR: _chosen, ...others } = env;
  const theirs = [agentDirectoryOf(env), agentDirectoryOf(others)].map(whole);
  if (!theirs.includes(whole(directory))) return;
  const why =
    "is pi's own configuration directory, which the daemon never writes. Omit it, or choose another directory";
  throw new StartError("config_invalid", `agentDirectory ${JSON.stringify(directory)} ${why}.`);
}

function whole(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
