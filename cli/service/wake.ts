import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { socketUnit } from "./systemd.ts";

const connectTimeoutMs = 5_000;

/**
 * Connects to the socket at which systemd listens for the daemon of a state directory, if there is one. This starts the
 * daemon.
 */
export async function wakeService({
  stateDir,
  env,
}: {
  readonly stateDir: string;
  readonly env: NodeJS.ProcessEnv;
}): Promise<boolean> {
  const path = join(stateDir, "daemon.sock");
  if (!existsSync(path) || !isServedBySystemd(path, env)) return false;
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(path);
  socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  socket.setTimeout(connectTimeoutMs, () => resolve(false));
  return promise.finally(() => socket.destroy());
}

function isServedBySystemd(path: string, env: NodeJS.ProcessEnv): boolean {
  const configured = env["XDG_CONFIG_HOME"];
  const home = env["HOME"] || homedir();
  const configHome = configured !== undefined && isAbsolute(configured) ? configured : join(home, ".config");
  try {
    return readFileSync(socketUnit(configHome), "utf8").includes(`\nListenStream=${path.replaceAll("%", "%%")}\n`);
  } catch {
    return false;
  }
}
