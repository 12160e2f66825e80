import { createValidator, type Validator } from "../protocol/validation.ts";
import { Channel } from "./channel.ts";
import { Client } from "./client.ts";
import type { Checks, PeerOptions } from "./daemon-peer.ts";
import type { OnDiagnostic } from "./diagnostic.ts";
import { DaemonNotRunningError } from "./local-errors.ts";
import { nodeSocket } from "./node-socket.ts";
import { type ReachOptions, reachDaemon } from "./reach.ts";
import { type ReconnectOptions, reconnectPolicy } from "./reconnect-policy.ts";
import { startDaemon } from "./start-daemon.ts";

export interface ConnectOptions extends ReachOptions {
  /**
   * Starts a daemon in the background if none runs on the state directory, as the command line does. It continues after
   * this program. Reconnecting starts none. Not with `url` or `socketPath`. Default: false.
   */
  readonly start?: boolean;
  /** The program's name, for people: shown with the effects of its calls. At most 64 characters. */
  readonly name?: string;
  /** Cancels connecting; does not affect the connected client. */
  readonly signal?: AbortSignal;
  /** Limit of each attempt to connect. The first one rejects with `TimeoutError`. Default: 10000. */
  readonly connectTimeoutMs?: number;
  /** Whether, and how, the client reconnects after a lost connection. Default: true. */
  readonly reconnect?: boolean | ReconnectOptions;
  /** Checks params before they are sent, so that the error names the call. Default: true. */
  readonly validate?: boolean;
  /**
   * Also checks everything that the daemon sends. A result that breaks the protocol rejects its call, such a notification
   * ends the connection, both with `ProtocolViolationError`. `"known"` ignores additions of later versions of the protocol.
   * Default: whether `PI_RPCD_VALIDATE` is `1`.
   */
  readonly validateResults?: boolean | "known";
  /** Called with unexpected things that were ignored, such as a frame that is not valid JSON. */
  readonly onDiagnostic?: OnDiagnostic;
  /** A larger frame ends the client with code 1009. Default: 134217728. */
  readonly maxFrameBytes?: number;
}

let validator: Validator | undefined;
let lenientValidator: Validator | undefined;

/**
 * Connects to the running daemon; the Unix socket is tried first, then TCP on loopback. Each attempt to reconnect reads
 * `daemon.json` again, because a restarted daemon may have another address.
 *
 * Rejects with `DaemonNotRunningError` (no daemon, or a stale `daemon.json`), `DaemonStartError`, `UnauthorizedError`,
 * `ProtocolMismatchError`, `TimeoutError`, `ConnectionFailedError`, the daemon's `WireError`, or the reason of `signal`.
 */
export async function connect(options: ConnectOptions = {}): Promise<Client> {
  const { connectTimeoutMs = 10_000, maxFrameBytes = 134_217_728, onDiagnostic } = options;
  const reconnect = reconnectPolicy(options.reconnect);
  const isNamed = options.url !== undefined || options.socketPath !== undefined;
  if (isNamed && options.start === true) throw new TypeError("start works without url and socketPath only.");
  options.signal?.throwIfAborted();
  const peer: PeerOptions = {
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
  };
  try {
    return await Client.open(peer, options.signal);
  } catch (error) {
    if (!(error instanceof DaemonNotRunningError) || isNamed || options.start === false) throw error;
    if (options.start === undefined) throw withAdvice(error);
    await startDaemon(options.stateDir, options.signal);
    return await Client.open(peer, options.signal);
  }
}

function withAdvice({ reason, detail, cause }: DaemonNotRunningError): DaemonNotRunningError {
  const advice = "Start one with `pi-rpcd start`, or let the program do it: connect({ start: true }).";
  return new DaemonNotRunningError(reason, detail, { cause, advice });
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
