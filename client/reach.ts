import type { DaemonFile } from "../protocol/daemon-file.ts";
import { WireError } from "../protocol/errors.ts";
import { type Address, checkSecrecy, isSameAddress, nameOf } from "./address.ts";
import { isAlive, listsOpenFiles, readDaemonFile, stateDirectory } from "./discovery.ts";
import { ConnectionFailedError, DaemonNotRunningError, LocalError, UnauthorizedError } from "./local-errors.ts";

/** How to find the daemon. Without an address, the `daemon.json` of the state directory names it. */
export interface ReachOptions {
  /** The state directory. Default: `PI_RPCD_STATE_DIR`, `$XDG_STATE_HOME/pi-rpcd`, `~/.local/state/pi-rpcd`. */
  readonly stateDir?: string;
  /** The daemon's Unix socket. */
  readonly socketPath?: string;
  /** The daemon's base URL. If `socketPath` is also given, the socket is tried first. */
  readonly url?: string;
  /**
   * The token. Default: the one in `daemon.json`, which is sent only to the addresses in that file. A token given here is
   * sent to any address, but to one outside the loopback interface only by `https:` or `wss:`: any other `url` is refused
   * with a `TypeError`.
   */
  readonly token?: string;
  /** Allows `http:` and `ws:` outside the loopback interface; the network can read the token then. Default: false. */
  readonly allowPlaintext?: boolean;
}

/** An address to try and the token to send there. */
export interface Candidate {
  readonly address: Address;
  readonly token: string | undefined;
}

export interface ReachRequest<T> {
  readonly options: ReachOptions;
  /** The signal of the attempts: its reason is thrown unchanged. */
  readonly signal: AbortSignal | undefined;
  readonly attempt: (candidate: Candidate) => Promise<T>;
}

/** Whether the caller, not `daemon.json`, names the address. */
function isExplicit(options: ReachOptions): boolean {
  return options.url !== undefined || options.socketPath !== undefined;
}

/**
 * Runs `attempt` against the daemon's addresses until one answers: the Unix socket, then TCP. The port in `daemon.json`
 * is not tried if nothing listens at the socket and the system cannot prove that the daemon's process is alive. If a token
 * from `daemon.json` is refused, the file is read once more: the daemon may have restarted, or its token was rotated.
 */
export async function reachDaemon<T>(request: ReachRequest<T>): Promise<T> {
  const { options } = request;
  const candidates = await candidatesOf(options);
  try {
    return await firstThatAnswers(candidates, request);
  } catch (error) {
    if (!(error instanceof UnauthorizedError) || options.token !== undefined) throw error;
    const again = await candidatesOf(options).catch(() => []);
    if (again.every(({ token }) => candidates.some((before) => before.token === token))) throw error;
    return firstThatAnswers(again, request);
  }
}

async function candidatesOf(options: ReachOptions): Promise<readonly Candidate[]> {
  const { socketPath, url, token } = options;
  const stateDir = stateDirectory(options.stateDir);
  if (!isExplicit(options)) {
    const file = await readDaemonFile(stateDir);
    return addressesOf(file, stateDir).map((address) => ({ address, token: token ?? file.token }));
  }
  const file = token === undefined ? await readDaemonFile(stateDir).catch(() => undefined) : undefined;
  const known = file === undefined ? [] : addressesOf(file, stateDir);
  const addresses: Address[] = [];
  if (socketPath !== undefined) addresses.push({ kind: "unix", socketPath });
  if (url !== undefined) {
    if (token !== undefined) checkSecrecy(url, options.allowPlaintext);
    addresses.push({ kind: "url", url });
  }
  return addresses.map((address) => ({
    address,
    token: token ?? (known.some((other) => isSameAddress(address, other)) ? file?.token : undefined),
  }));
}

/** The socket also works across containers that share a directory; the port counts only while the daemon is alive. */
function addressesOf({ socketPath, url, pid }: DaemonFile, stateDir: string): readonly Address[] {
  const socket: Address = { kind: "unix", socketPath };
  // Another user may own a dead daemon's port and would receive the token.
  return isAlive(pid, stateDir) ? [socket, { kind: "url", url }] : [socket];
}

async function firstThatAnswers<T>(
  candidates: readonly Candidate[],
  { options, signal, attempt }: ReachRequest<T>,
): Promise<T> {
  const errors: unknown[] = [];
  const tried: Candidate[] = [];
  for (const candidate of candidates) {
    // Nothing listens at the daemon's socket: it has ended or the socket was deleted. The port needs proof that it is alive.
    if (!isExplicit(options) && !listsOpenFiles && errors.some(hasNoListener)) break;
    tried.push(candidate);
    try {
      return await attempt(candidate);
    } catch (error) {
      if (!isUnreachable(error)) throw isPlatformError(error, signal) ? failed(candidate, error) : error;
      errors.push(error);
    }
  }
  const where = tried.map(({ address }) => nameOf(address)).join(" and ");
  const stale = !isExplicit(options) && tried.length === 1;
  const detail = stale
    ? `daemon.json in ${stateDirectory(options.stateDir)} belongs to a daemon that has ended (nothing listens at ${where})`
    : `nothing listens at ${where}`;
  const cause = errors.length === 1 ? errors[0] : new AggregateError(errors);
  throw new DaemonNotRunningError(stale ? "stale" : "refused", detail, { cause });
}

const unreachableCodes: ReadonlySet<string | undefined> = new Set([
  "ECONNREFUSED",
  "ENOENT",
  "ENOTDIR",
  "ENOTSOCK",
  "EACCES",
  "EPERM",
  "EINVAL",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "EHOSTDOWN",
]);

/** The error codes of a socket without a listener. */
const noListenerCodes: ReadonlySet<string | undefined> = new Set(["ECONNREFUSED", "ENOENT", "ENOTDIR", "ENOTSOCK"]);

function hasNoListener(error: unknown): boolean {
  return noListenerCodes.has((error as NodeJS.ErrnoException).code);
}

/** Whether an error proves that no byte of a request was sent, so that another address may be tried. */
function isUnreachable(error: unknown): boolean {
  return error instanceof Error && unreachableCodes.has((error as NodeJS.ErrnoException).code);
}

/** Whether the error comes from the platform (a TLS failure, a reset), not from this library, the daemon or the signal. */
function isPlatformError(error: unknown, signal: AbortSignal | undefined): error is Error {
  const isOwn = error instanceof LocalError || error instanceof WireError || error === signal?.reason;
  return error instanceof Error && !isOwn;
}

function failed({ address }: Candidate, cause: Error): ConnectionFailedError {
  return new ConnectionFailedError(`Talking to the daemon at ${nameOf(address)} failed: ${cause.message}`, { cause });
}
