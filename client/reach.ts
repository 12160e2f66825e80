import type { DaemonFile } from "../protocol/daemon-file.ts";
import { WireError } from "../protocol/errors.ts";
import { type Address, checkSecrecy, isSameAddress, nameOf } from "./address.ts";
import { isAlive, readDaemonFile, stateDirectory } from "./discovery.ts";
import { ConnectionFailedError, DaemonNotRunningError, LocalError, UnauthorizedError } from "./local-errors.ts";
import { tellsOpenFiles } from "./open-files.ts";

/** Which daemon. Without an address it is found by the `daemon.json` of the state directory. */
export interface ReachOptions {
  /** The state directory. Default: `PI_RPCD_STATE_DIR`, `$XDG_STATE_HOME/pi-rpcd`, `~/.local/state/pi-rpcd`. */
  readonly stateDir?: string;
  /** The daemon's Unix socket. */
  readonly socketPath?: string;
  /** The daemon's base URL. With `socketPath` too, the socket is tried first. */
  readonly url?: string;
  /**
   * The token. Default: the one in `daemon.json`, which is sent to the addresses that this file names and to no other.
   * A token given here is sent to whatever address is used, but beyond loopback only by `https:` or `wss:`: any other
   * `url` is refused with a `TypeError`.
   */
  readonly token?: string;
  /** Sends the token by `http:` or `ws:` beyond loopback too, where anybody on the way can read it. Default: false. */
  readonly allowPlaintext?: boolean;
}

/** A place to try and what to show there. */
export interface Candidate {
  readonly address: Address;
  readonly token: string | undefined;
}

export interface ReachRequest<T> {
  readonly options: ReachOptions;
  /** What the attempts listen to: its reason is passed on as it is. */
  readonly signal: AbortSignal | undefined;
  readonly attempt: (candidate: Candidate) => Promise<T>;
}

/** Whether the caller, and not `daemon.json`, says where the daemon is. */
function isExplicit(options: ReachOptions): boolean {
  return options.url !== undefined || options.socketPath !== undefined;
}

/**
 * Runs `attempt` against the daemon's addresses until one answers: the Unix socket, then TCP. The port that `daemon.json`
 * names is not tried where nobody listens at the socket and the system cannot prove that the daemon's process lives. When a
 * token from `daemon.json` is refused, the file is read once more: the daemon may have been started anew, or its token
 * rotated.
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
  const named = file === undefined ? [] : addressesOf(file, stateDir);
  const addresses: Address[] = [];
  if (socketPath !== undefined) addresses.push({ kind: "unix", socketPath });
  if (url !== undefined) {
    if (token !== undefined) checkSecrecy(url, options.allowPlaintext);
    addresses.push({ kind: "url", url });
  }
  return addresses.map((address) => ({
    address,
    token: token ?? (named.some((other) => isSameAddress(address, other)) ? file?.token : undefined),
  }));
}

/** The socket works across containers that share a directory; the port is worth a try only while its owner lives. */
function addressesOf({ socketPath, url, pid }: DaemonFile, stateDir: string): readonly Address[] {
  const socket: Address = { kind: "unix", socketPath };
  // A dead daemon's port may be another user's by now, who would be shown the token.
  return isAlive(pid, stateDir) ? [socket, { kind: "url", url }] : [socket];
}

async function firstThatAnswers<T>(
  candidates: readonly Candidate[],
  { options, signal, attempt }: ReachRequest<T>,
): Promise<T> {
  const errors: unknown[] = [];
  const tried: Candidate[] = [];
  for (const candidate of candidates) {
    // Nobody at the daemon's own socket: it has ended, or somebody has deleted that. Only proof is good enough then.
    if (!isExplicit(options) && !tellsOpenFiles && errors.some(isNobody)) break;
    tried.push(candidate);
    try {
      return await attempt(candidate);
    } catch (error) {
      if (!isUnreachable(error)) throw isForeign(error, signal) ? failed(candidate, error) : error;
      errors.push(error);
    }
  }
  const where = tried.map(({ address }) => nameOf(address)).join(" and ");
  const stale = !isExplicit(options) && tried.length === 1;
  const detail = stale
    ? `daemon.json in ${stateDirectory(options.stateDir)} is of a daemon that has ended (nothing listens at ${where})`
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

/** What a socket says that a daemon has left. */
const nobodyCodes: ReadonlySet<string | undefined> = new Set(["ECONNREFUSED", "ENOENT", "ENOTDIR", "ENOTSOCK"]);

function isNobody(error: unknown): boolean {
  return nobodyCodes.has((error as NodeJS.ErrnoException).code);
}

/** Whether an error means that no byte of a request went out, so that another address may be tried. */
function isUnreachable(error: unknown): boolean {
  return error instanceof Error && unreachableCodes.has((error as NodeJS.ErrnoException).code);
}

/** An error of the platform's (a TLS failure, a reset): neither ours, nor the daemon's, nor the signal's. */
function isForeign(error: unknown, signal: AbortSignal | undefined): error is Error {
  const known = error instanceof LocalError || error instanceof WireError || error === signal?.reason;
  return error instanceof Error && !known;
}

function failed({ address }: Candidate, cause: Error): ConnectionFailedError {
  return new ConnectionFailedError(`Talking to the daemon at ${nameOf(address)} failed: ${cause.message}`, { cause });
}
