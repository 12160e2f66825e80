/** pi-rpcd's client for browsers: the objects of `index.ts` over the platform's WebSocket, without Node's modules. */
import { checkSecrecy } from "./address.ts";
import { browserSocket } from "./browser-socket.ts";
import { Channel } from "./channel.ts";
import { Client } from "./client.ts";
import type { OnDiagnostic } from "./diagnostic.ts";
import { type ReconnectOptions, reconnectPolicy } from "./reconnect-policy.ts";

export interface ConnectToOptions {
  /** The daemon's base URL. The daemon must allow the page's origin. */
  readonly url: string;
  /** The path of the WebSocket endpoint, which starts with `/`. Default: `/v1/ws`. */
  readonly path?: string;
  /**
   * The only process of the daemon to connect to, as `instance` of `daemon/info` names it. It is compared on each connection
   * before anything else is sent; another process rejects with `AnotherDaemonError`, and the client does not reconnect.
   * Default: any.
   */
  readonly instance?: string;
  /** A token of the daemon. It is sent as a WebSocket subprotocol, never in the URL. */
  readonly token: string;
  /**
   * Allows `http:` and `ws:` outside the loopback interface; the network can read the token then. Default: false; such a
   * `url` is refused with a `TypeError`.
   */
  readonly allowPlaintext?: boolean;
  /** The program's name, for people: shown with the effects of its calls. At most 64 characters. */
  readonly name?: string;
  /** Cancels connecting; does not affect the connected client. */
  readonly signal?: AbortSignal;
  /** Limit of each attempt to connect. The first one rejects with `TimeoutError`. Default: 10000. */
  readonly connectTimeoutMs?: number;
  /** Whether, and how, the client reconnects after a lost connection. Default: true. */
  readonly reconnect?: boolean | ReconnectOptions;
  /** Called with unexpected things that were ignored, such as a frame that is not valid JSON. */
  readonly onDiagnostic?: OnDiagnostic;
}

/**
 * Connects to a daemon. Browsers do not report why a WebSocket did not open: no daemon, a wrong token and an origin that is
 * not allowed all reject with `ConnectionFailedError`. Also rejects with `AnotherDaemonError`, `ProtocolMismatchError`,
 * `TimeoutError` or the reason of `signal`.
 */
export async function connectTo(options: ConnectToOptions): Promise<Client> {
  const { url, path, instance, token, connectTimeoutMs = 10_000, onDiagnostic } = options;
  checkSecrecy(url, options.allowPlaintext);
  return Client.open(
    {
      dial: (channelOptions, signal) => Channel.open(browserSocket({ url, path, token, signal }), channelOptions),
      instance,
      name: options.name,
      connectTimeoutMs,
      reconnect: reconnectPolicy(options.reconnect),
      onDiagnostic,
    },
    options.signal,
  );
}

export type { By } from "../protocol/client-identity.ts";
export type { Control, ControlPolicy } from "../protocol/control.ts";
export type { DaemonInfo } from "../protocol/daemon.ts";
export type { Attempt, Delivery, DeliveryState, Evidence, Reason, WaitUntil } from "../protocol/delivery.ts";
export { type ErrorData, type ErrorName, WireError } from "../protocol/errors.ts";
export type { Gap } from "../protocol/event.ts";
export type { MethodName, Params, Result } from "../protocol/methods.ts";
export type { Prompt, PromptResult, PromptState, RunOutcome } from "../protocol/prompt.ts";
export type { SessionInfo } from "../protocol/session.ts";
export type { ConnectionEnd } from "./channel.ts";
export type { Client } from "./client.ts";
export type { ConnectionEvent } from "./connection.ts";
export type { CallOptions } from "./daemon-peer.ts";
export type { DeliveryHandle } from "./delivery.ts";
export type { DeliveryUpdates } from "./delivery-updates.ts";
export type { Diagnostic, OnDiagnostic } from "./diagnostic.ts";
export type { EventStream, EventsOptions } from "./event-stream.ts";
export * from "./local-errors.ts";
export * from "./pi-events.ts";
export type { ProviderEvent, ProviderEvents, ProviderEventsOptions } from "./provider-events.ts";
export type { ReconnectOptions } from "./reconnect-policy.ts";
export type { FeedStart } from "./session-feed.ts";
export type {
  CommandOptions,
  ControlOptions,
  EntryPieceOptions,
  MessageOptions,
  PiCommand,
  PromptOptions,
  PushParams,
  SessionHandle,
  TranscriptOptions,
} from "./session-handle.ts";
export type { PromptCall } from "./settled-run.ts";
