import { createValidator, type Validator } from "../protocol/validation.ts";
import { Client, requireProtocol } from "./client.ts";
import type { Checks } from "./daemon-peer.ts";
import type { OnDiagnostic } from "./diagnostic.ts";
import { TimeoutError } from "./local-errors.ts";
import { nodeSocket } from "./node-socket.ts";
import { isExplicit, type ReachOptions, reachDaemon } from "./reach.ts";

export interface ConnectOptions extends ReachOptions {
  /** Gives connecting up; does nothing to the client once there is one. */
  readonly signal?: AbortSignal;
  /** Default: 10000. Ends with `TimeoutError`. */
  readonly connectTimeoutMs?: number;
  /** Checks params before they are sent, so that a mistake shows where it was made. Default: true. */
  readonly validate?: boolean;
  /**
   * Checks all that the daemon sends too. A result that breaks the protocol rejects its call, a notification that does
   * ends the connection, both with `ProtocolViolationError`. Default: whether `PI_RPCD_VALIDATE` is `1`.
   */
  readonly validateResults?: boolean;
  /** Hears of what was odd and ignored, such as a frame that is not JSON. */
  readonly onDiagnostic?: OnDiagnostic;
  /** A larger frame ends the connection with code 1009. Default: 134217728. */
  readonly maxFrameBytes?: number;
}

let validator: Validator | undefined;

/**
 * Connects to the running daemon; the Unix socket is tried first, then TCP on loopback.
 *
 * Rejects with `DaemonNotRunningError` (no daemon, or a `daemon.json` that leads to none), `UnauthorizedError`,
 * `ProtocolMismatchError`, `TimeoutError`, `ConnectionFailedError`, the daemon's `WireError`, or the reason of `signal`.
 */
export async function connect(options: ConnectOptions = {}): Promise<Client> {
  const { connectTimeoutMs = 10_000, maxFrameBytes = 134_217_728, onDiagnostic } = options;
  const deadline = AbortSignal.timeout(connectTimeoutMs);
  const signal = options.signal === undefined ? deadline : AbortSignal.any([options.signal, deadline]);
  const peerOptions = { checks: checksFor(options), ...(onDiagnostic !== undefined && { onDiagnostic }) };
  try {
    options.signal?.throwIfAborted();
    return await reachDaemon({
      options,
      signal,
      attempt: async ({ address, token }) => {
        const client = await Client.open(nodeSocket({ address, token, signal, maxFrameBytes }), peerOptions);
        // daemon.json has said it already.
        if (isExplicit(options)) await requireProtocol(client, { signal });
        return client;
      },
    });
  } catch (error) {
    if (error !== deadline.reason || !deadline.aborted) throw error;
    throw new TimeoutError(`Connecting to the daemon took longer than ${connectTimeoutMs} ms.`, { cause: error });
  }
}

function checksFor({
  validate = true,
  validateResults = process.env["PI_RPCD_VALIDATE"] === "1",
}: ConnectOptions): Checks {
  if (!validate && !validateResults) return {};
  validator ??= createValidator();
  const { params, result, notification } = validator;
  return { ...(validate && { params }), ...(validateResults && { result, notification }) };
}
