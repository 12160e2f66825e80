import { lstatSync, mkdtempSync, readFileSync, rmdirSync, type Stats } from "node:fs";
import { connect } from "node:net";
import { dirname, join } from "node:path";
import { bad, type Finding, good, odd } from "./finding.ts";

/** The limit of a Unix socket's path (sun_path), without its final NUL. */
const maxSocketPathBytes = process.platform === "linux" ? 107 : 103;
const connectTimeoutMs = 3_000;

/** Checks the owner, the permissions and the place of the state directory. */
export function checkStateDirectory(stateDir: string, env: NodeJS.ProcessEnv): Finding {
  const name = "state directory";
  const bytes = Buffer.byteLength(join(stateDir, "daemon.sock"));
  if (bytes > maxSocketPathBytes) {
    const problem = `${stateDir}: the socket's path has ${bytes} bytes; the system's limit is ${maxSocketPathBytes}`;
    return bad(name, problem, "Choose a shorter path with --state-dir or PI_RPCD_STATE_DIR.");
  }
  const found = statOf(stateDir);
  if (found === undefined) {
    const obstacle = obstacleTo(stateDir);
    if (obstacle === undefined) return good(name, `${stateDir} does not exist yet; the first start creates it`);
    const problem = `${stateDir} cannot be created: ${obstacle}`;
    return bad(name, problem, "Choose another with --state-dir or PI_RPCD_STATE_DIR.");
  }
  if (!found.isDirectory()) {
    return bad(
      name,
      `${stateDir} is not a directory`,
      `Move it away, or choose another with --state-dir: mv ${stateDir} ${stateDir}.old`,
    );
  }
  const foreign = ownership(found);
  if (foreign !== undefined) return bad(name, `${stateDir} ${foreign}`, "Choose another with --state-dir.");
  if ((found.mode & 0o077) !== 0) {
    return bad(
      name,
      `${stateDir} has the permissions ${rights(found)}: other users can read it`,
      `chmod 700 ${stateDir}`,
    );
  }
  if ((found.mode & 0o700) !== 0o700) {
    return bad(
      name,
      `${stateDir} has the permissions ${rights(found)}: the daemon cannot use it`,
      `chmod 700 ${stateDir}`,
    );
  }
  const fleeting = removedAtLogout(stateDir, env["XDG_RUNTIME_DIR"], mountsOf("self"));
  if (fleeting !== undefined) {
    const problem = `${stateDir} is in ${fleeting}, which the system removes when you log out, with all sessions and running work`;
    return odd(name, problem, "Choose another with --state-dir or PI_RPCD_STATE_DIR.");
  }
  return good(name, `${stateDir}, private`);
}

/** A temporary directory that systemd or PAM made for a service or a login session. */
const privateTemporary = /(?:^|\/)systemd-private-|(?:^|\/)[^/]*\.inst(?:\/|$)/;

/** The directory above the path that a logout removes, if there is one. `mounts`: lines of /proc/PID/mountinfo. */
export function removedAtLogout(path: string, runtime: string | undefined, mounts: string): string | undefined {
  const isIn = (directory: string): boolean => path === directory || path.startsWith(`${directory}/`);
  const runtimes = [...(runtime === undefined || runtime === "" ? [] : [runtime.replace(/\/+$/, "")]), "/run/user"];
  const found = runtimes.find(isIn);
  if (found !== undefined) return found;
  return mounts
    .split("\n")
    .map((line) => line.split(" "))
    .find(([, , , root = "", point = ""]) => privateTemporary.test(root) && isIn(point))?.[4];
}

function mountsOf(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, "utf8");
  } catch {
    return "";
  }
}

/** Checks the file of the daemon's token. */
export function checkToken(stateDir: string): Finding {
  const name = "token";
  const path = join(stateDir, "token");
  const found = statOf(path);
  if (found === undefined) return good(name, "does not exist yet; the first start creates it");
  const remove = `rm ${path} (the next start creates another; clients read it from daemon.json)`;
  if (!found.isFile()) return bad(name, `${path} is not a regular file`, remove);
  const foreign = ownership(found);
  if (foreign !== undefined) return bad(name, `${path} ${foreign}`, remove);
  if ((found.mode & 0o077) !== 0) {
    return bad(name, `${path} has the permissions ${rights(found)}: other users may have read it`, remove);
  }
  try {
    if (/^[\w-]{43,}$/.test(readFileSync(path, "utf8").trim())) return good(name, `${path}, private`);
    return bad(name, `${path} does not contain a valid token`, remove);
  } catch (error) {
    return bad(name, `${path} cannot be read (${(error as NodeJS.ErrnoException).code})`, `chmod 600 ${path}`);
  }
}

/** Checks the socket's path when the daemon does not answer. */
export async function checkFreeSocket(stateDir: string): Promise<Finding> {
  const name = "socket";
  const path = join(stateDir, "daemon.sock");
  const found = statOf(path);
  if (found === undefined) return good(name, `${path} is free`);
  if (!found.isSocket()) return bad(name, `${path} is not a socket`, `rm ${path}`);
  if (await listens(path)) {
    const todo = `End the program that listens there (\`ss -xlp\` names it), or choose another directory with --state-dir.`;
    return bad(name, `another program listens at ${path}`, todo);
  }
  return odd(name, `${path} was left by a daemon that was killed`, "No action needed: the next start removes it.");
}

/** Checks the permissions of the daemon's socket. */
export function checkSocket(path: string): Finding {
  const name = "socket";
  const found = statOf(path);
  if (found === undefined) {
    return bad(
      name,
      `${path} does not exist although its daemon runs: it was removed`,
      "pi-rpcd stop && pi-rpcd start",
    );
  }
  if (!found.isSocket()) return bad(name, `${path} is not a socket`, "pi-rpcd stop && pi-rpcd start");
  const foreign = ownership(found);
  if (foreign !== undefined) return bad(name, `${path} ${foreign}`, "pi-rpcd stop && pi-rpcd start");
  if ((found.mode & 0o077) !== 0) {
    return bad(name, `${path} has the permissions ${rights(found)}`, `chmod 600 ${path}`);
  }
  return good(name, `${path}, private`);
}

/**
 * Why a missing directory cannot be created; undefined if it can. Permissions alone do not tell: root may write in a
 * directory that accepts nothing, such as /proc. So this creates and removes a directory in the nearest existing one.
 */
function obstacleTo(path: string): string | undefined {
  let above = dirname(path);
  while (statOf(above) === undefined) above = dirname(above);
  try {
    rmdirSync(mkdtempSync(join(above, ".pi-rpcd-doctor-")));
    return undefined;
  } catch (error) {
    return `${above} accepts no directory (${(error as NodeJS.ErrnoException).code})`;
  }
}

function statOf(path: string): Stats | undefined {
  try {
    return lstatSync(path);
  } catch {
    return undefined;
  }
}

function ownership({ uid }: Stats): string | undefined {
  return uid === process.getuid?.() ? undefined : `belongs to another user (${uid})`;
}

function rights({ mode }: Stats): string {
  return (mode & 0o777).toString(8).padStart(3, "0");
}

function listens(path: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect(path);
  // A program that accepts a connection and never answers also listens.
  socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
  socket.setTimeout(connectTimeoutMs, () => resolve(true));
  return promise.finally(() => socket.destroy());
}
