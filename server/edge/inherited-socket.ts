import { fstatSync, lstatSync, readFileSync, realpathSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { StartError } from "../lib/start-error.ts";

/** The first descriptor that a service manager passes (sd_listen_fds). */
const firstDescriptor = 3;

/** Returns the listening socket that systemd passed to this process, once; undefined without one. */
export function inheritedSocket(env: NodeJS.ProcessEnv = process.env): number | undefined {
  const { LISTEN_PID: pid, LISTEN_FDS: count } = env;
  if (Number(pid) !== process.pid || !(Number(count) >= 1)) return undefined;
  for (const name of ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"]) delete env[name];
  return firstDescriptor;
}

/**
 * Throws `listen_unsafe` unless an inherited socket is the Unix socket at the path and private to its user. Node cannot
 * tell its type or path, so the kernel's table is read.
 */
export function requireOwnSocket(descriptor: number, path: string): void {
  const unsafe = (why: string): StartError =>
    new StartError(
      "listen_unsafe",
      `The socket from the service manager ${why}. It must be the Unix socket ${path}, with the mode 0600.`,
    );
  const bound = boundTo(descriptor);
  if (bound === undefined) throw unsafe("is not a Unix socket with a path");
  if (!isSamePath(bound, path)) throw unsafe(`is at ${bound}`);
  const { mode, uid } = lstatSync(path);
  if ((mode & 0o777) !== 0o600) throw unsafe(`has the mode ${(mode & 0o777).toString(8).padStart(4, "0")}`);
  if (uid !== process.getuid?.()) throw unsafe("belongs to another user");
}

/** Returns the path of a bound Unix socket; undefined for other descriptors, or if the system does not tell. */
function boundTo(descriptor: number): string | undefined {
  try {
    const inode = String(fstatSync(descriptor).ino);
    for (const line of readFileSync("/proc/net/unix", "utf8").split("\n")) {
      const [, ofLine, path] = /^\S+: \S+ \S+ \S+ \S+ \S+ +(\d+) (\/.*)$/.exec(line) ?? [];
      if (ofLine === inode) return path;
    }
  } catch {
    // The descriptor or the kernel's table does not exist.
  }
  return undefined;
}

function isSamePath(one: string, other: string): boolean {
  try {
    return resolved(one) === resolved(other);
  } catch {
    return false;
  }
}

function resolved(path: string): string {
  return join(realpathSync(dirname(path)), basename(path));
}
