import { homedir } from "node:os";
import { isAbsolute, join, resolve, sep } from "node:path";
import { DAEMON_FILE_NAME, type DaemonFile } from "../protocol/daemon-file.ts";
import { PROTOCOL_VERSION } from "../protocol/wire.ts";
import { isLoopback } from "./address.ts";
import { DaemonNotRunningError, HomeEmptyError, type NotRunningReason, ProtocolMismatchError } from "./local-errors.ts";

// An import evaluates every export, also the lazy ones: that takes a short program longer than its call.
const { closeSync, constants, fstatSync, openSync, readdirSync, readFileSync, readlinkSync, realpathSync } =
  process.getBuiltinModule("node:fs");

const maxFileChars = 65_536;

/**
 * The daemon's state directory: `stateDir`, else `PI_RPCD_STATE_DIR`, else `$XDG_STATE_HOME/pi-rpcd`, else
 * `~/.local/state/pi-rpcd`. Empty values count as absent; so does a relative `XDG_STATE_HOME`, as its specification requires.
 * Throws `HomeEmptyError`.
 */
export function stateDirectory(stateDir?: string, env: NodeJS.ProcessEnv = process.env): string {
  const given = stateDir || env["PI_RPCD_STATE_DIR"];
  if (given) return resolve(given);
  const stateHome = env["XDG_STATE_HOME"];
  if (stateHome && isAbsolute(stateHome)) return join(stateHome, "pi-rpcd");
  // Node's homedir() is empty then, too, and the path would be relative to the working directory.
  if (env["HOME"] === "") throw new HomeEmptyError();
  return join(env["HOME"] ?? homedir(), ".local", "state", "pi-rpcd");
}

/**
 * Reads the `daemon.json` of a state directory. Throws `DaemonNotRunningError` if it is missing, unreadable, another user's
 * (root may read those), or malformed (which includes an address that is not on the loopback interface), and
 * `ProtocolMismatchError` if its daemon speaks another version of the protocol.
 */
export async function readDaemonFile(stateDir: string): Promise<DaemonFile> {
  const path = join(stateDir, DAEMON_FILE_NAME);
  let text: string;
  let owner: number;
  try {
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      owner = fstatSync(file).uid;
      text = readFileSync(file, "utf8");
    } finally {
      closeSync(file);
    }
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === "ENOENT" || code === "ENOTDIR") throw failure("missing", `${path} does not exist`, error);
    throw failure("unreadable", `${path} cannot be read (${code ?? String(error)})`, error);
  }
  // Where others can make the directory, such as below /tmp, another user could have clients talk to a daemon of their own.
  const own = process.getuid?.();
  if (own !== undefined && own !== 0 && owner !== own) {
    throw failure("unreadable", `${path} belongs to another user`);
  }
  return parse(text, path);
}

/**
 * Whether the daemon of a state directory still runs, by its process id. The system may have given the id to another
 * process, so where it lists open files, the process must have files of the directory open.
 */
export function isAlive(pid: number, stateDir: string): boolean {
  try {
    process.kill(pid, 0);
    return hasOpenFilesIn(pid, stateDir) !== false;
  } catch {
    // EPERM means another user's process: the daemon has ended and its id was given to another process.
    return false;
  }
}

/** Whether the system lists the files that a process has open. */
export const listsOpenFiles: boolean = process.platform === "linux";

/**
 * Whether a process of this machine has files open in a directory; undefined if the system does not list open files. The
 * process id of a daemon in a container can belong to another program here, although both see the directory.
 */
export function hasOpenFilesIn(pid: number, directory: string): boolean | undefined {
  if (!listsOpenFiles) return undefined;
  const descriptors = `/proc/${pid}/fd`;
  try {
    const folder = realpathSync(directory) + sep;
    return readdirSync(descriptors).some((descriptor) => linkOf(join(descriptors, descriptor)).startsWith(folder));
  } catch {
    return false;
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}

function parse(text: string, path: string): DaemonFile {
  let value: unknown;
  try {
    if (text.length > maxFileChars) throw new RangeError(`it is longer than ${maxFileChars} characters`);
    value = JSON.parse(text);
  } catch (error) {
    throw failure("malformed", `${path} is not a daemon file (${(error as Error).message})`, error);
  }
  const file = (typeof value === "object" && value !== null ? value : {}) as { readonly [key: string]: unknown };
  const { pid, version, protocol, url, socketPath, tlsUrl, tlsNotBefore, tlsNotAfter, token } = file;
  // This check comes first because a file of another version may have other fields.
  if (Number.isInteger(protocol) && typeof version === "string" && protocol !== PROTOCOL_VERSION) {
    throw new ProtocolMismatchError({ client: PROTOCOL_VERSION, daemon: protocol as number, daemonVersion: version });
  }
  const checks: readonly (readonly [field: string, good: boolean])[] = [
    ["pid", Number.isInteger(pid) && (pid as number) > 0],
    ["version", typeof version === "string"],
    ["protocol", Number.isInteger(protocol)],
    ["url", typeof url === "string" && isLoopback(url)],
    ["socketPath", typeof socketPath === "string" && isAbsolute(socketPath)],
    ["tlsUrl", tlsUrl === undefined || (typeof tlsUrl === "string" && /^https:\/\/[!-~]+$/.test(tlsUrl))],
    ["tlsNotBefore", tlsNotBefore === undefined || isTime(tlsNotBefore)],
    ["tlsNotAfter", tlsNotAfter === undefined || isTime(tlsNotAfter)],
    ["token", typeof token === "string" && /^[!-~]+$/.test(token)],
  ];
  const wrong = checks.find(([, good]) => !good);
  if (wrong !== undefined) throw failure("malformed", `${path} has no usable "${wrong[0]}"`);
  const tls = tlsUrl === undefined ? {} : { tlsUrl, tlsNotBefore, tlsNotAfter };
  return { pid, version, protocol, url, socketPath, ...tls, token } as DaemonFile;
}

/** Whether the value is a time that a `Date` can represent. */
function isTime(value: unknown): boolean {
  return Number.isInteger(value) && Math.abs(value as number) <= 8.64e15;
}

function failure(reason: NotRunningReason, detail: string, cause?: unknown): DaemonNotRunningError {
  return new DaemonNotRunningError(reason, detail, cause === undefined ? undefined : { cause });
}
