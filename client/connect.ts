import { createValidator, type Validator } from "../protocol/validation.ts";
import { Channel } from "./channel.ts";
import { Client } from "./client.ts";
import type { Checks } from "./daemon-peer.ts";
import type { OnDiagnostic } from "./diagnostic.ts";
import { nodeSocket } from "./node-socket.ts";
import { type ReachOptions, reachDaemon } from "./reach.ts";
import { type ReconnectOptions, reconnectPolicy } from "./reconnect-policy.ts";

export interface ConnectOptions extends ReachOptions {
  /** What this program calls itself, for people: shown with what follows from its calls. At most 64 characters. */
  readonly name?: string;
  /** Gives connecting up; does nothing to the client once there is one. */
  readonly signal?: AbortSignal;
  /** Bound of the first try and of each later one. Default: 10000. Ends with `TimeoutError`. */
  readonly connectTimeoutMs?: number;
  /** Whether, and how, a lost connection is made again. Default: true. */
  readonly reconnect?: boolean | ReconnectOptions;
  /** Checks params before they are sent, so that a mistake shows where it was made. Default: true. */
  readonly validate?: boolean;
  /**
   * Checks all that the daemon sends too. A result that breaks the protocol rejects its call, a notification that does
   * ends the connection, both with `ProtocolViolationError`. `"known"` lets pass what a later version of the protocol may
   * add. Default: whether `PI_RPCD_VALIDATE` is `1`.
   */
  readonly validateResults?: boolean | "known";
  /** Hears of what was odd and ignored, such as a frame that is not JSON. */
  readonly onDiagnostic?: OnDiagnostic;
  /** A larger frame ends the connection for good, with code 1009. Default: 134217728. */
  readonly maxFrameBytes?: number;
}

let validator: Validator | undefined;
let lenientValidator: Validator | undefined;

/**
 * Connects to the running daemon; the Unix socket is tried first, then TCP on loopback. `daemon.json` is read anew each
 * time a lost connection is made again: after a restart the daemon may be elsewhere.
 *
 * Rejects with `DaemonNotRunningError` (no daemon, or a `daemon.json` that leads to none), `UnauthorizedError`,
 * `ProtocolMismatchError`, `TimeoutError`, `ConnectionFailedError`, the daemon's `WireError`, or the reason of `signal`.
 */
export async function connect(options: ConnectOptions = {}): Promise<Client> {
  const { connectTimeoutMs = 10_000, maxFrameBytes = 134_217_728, onDiagnostic } = options;
  const reconnect = reconnectPolicy(options.reconnect);
  options.signal?.throwIfAborted();
  return Client.open(
    {
      dial: (channelOptions, signal) =>
        reachDaemon({
          options,
          signal,
          attempt: ({ address, token }) =>
            Channel.open(nodeSocket({ address, token, signal, maxFrameBytes }), channelOptions),
        }),
      name: options.name,
      connectTimeoutMs,
      reconnect,
      checks: checksFor(options),
      onDiagnostic,
    },
    options.signal,
  );
}

function checksFor({
  validate = true,
  validateResults = process.env["PI_RPCD_VALIDATE"] === "1",
}: ConnectOptions): Checks {
  if (!validate && !validateResults) return {};
  validator ??= createValidator();
  if (validateResults === "known") lenientValidator ??= createValidator({ ignoreUnknown: true });
  const { params } = validator;
  const { result, notification } = (validateResults === "known" ? lenientValidator : undefined) ?? validator;
  return { ...(validate && { params }), ...(validateResults !== false && { result, notification }) };
}
