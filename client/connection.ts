import { WireError } from "../protocol/errors.ts";
import { PROTOCOL_VERSION } from "../protocol/wire.ts";
import type { Channel, ChannelOptions, ConnectionEnd } from "./channel.ts";
import {
  AnotherDaemonError,
  ConnectionClosedError,
  ProtocolMismatchError,
  ProtocolViolationError,
  ReconnectFailedError,
  TimeoutError,
  WaitingOverflowError,
} from "./local-errors.ts";
import { pause } from "./pause.ts";
import { isFinal, nextTry, type ReconnectPolicy, stableAfterMs } from "./reconnect-policy.ts";
import type { Repeat } from "./repeatable.ts";
import { type PendingCall, WaitingCalls } from "./waiting-calls.ts";

/** A change of a client's connection. */
export type ConnectionEvent =
  /** It was lost, or an attempt to reconnect failed. The next attempt has the number `attempt` and starts in `nextTryInMs`. */
  | { readonly kind: "lost"; readonly reason: Error; readonly attempt: number; readonly nextTryInMs: number }
  /** A new connection is open. `daemon` says whether it leads to the same process as before. */
  | { readonly kind: "connected"; readonly daemon: "same" | "another" }
  /** It ended permanently. */
  | { readonly kind: "closed"; readonly end: ConnectionEnd };

/** How the daemon recognises a client, over all its connections. */
export interface ClientIdentity {
  readonly id: string;
  /** For people. */
  readonly name?: string;
}

/** Opens a channel to the daemon's current address. The signal cancels the attempt. */
export type Dial = (options: ChannelOptions, signal: AbortSignal) => Promise<Channel>;

export interface ConnectionOptions {
  readonly client: ClientIdentity;
  readonly dial: Dial;
  /** The only process to use: another one gets nothing but the first request. Default: any. */
  readonly instance?: string | undefined;
  /** Limit of each attempt. */
  readonly connectTimeoutMs: number;
  /** Undefined: the connection ends with its first channel. */
  readonly reconnect: ReconnectPolicy | undefined;
  readonly onNotification: ChannelOptions["onNotification"];
  readonly onDiagnostic: ChannelOptions["onDiagnostic"];
  /** The channel was lost; a new one will be opened. */
  readonly onDown: () => void;
  /** A new channel is open; nothing was sent on it yet. */
  readonly onUp: () => void;
  /** It ended permanently. Pending calls are rejected after this call. */
  readonly onOver: (end: ConnectionEnd, error: Error) => void;
  /** Called last, after everything else was updated. */
  readonly onEvent: (event: ConnectionEvent) => void;
}

export interface RequestOptions {
  readonly signal: AbortSignal | undefined;
  readonly repeat: Repeat;
  /**
   * Called when the answer arrives, before anything that arrived after it, with its result; undefined: it is an error. A
   * malformed answer, and a refusal of a request that the daemon could not read, only reject the promise.
   */
  readonly onAnswer?: ((result: unknown) => void) | undefined;
}

interface Contact {
  readonly channel: Channel;
  /** Names the daemon's process. */
  readonly daemon: string;
}

type State =
  | { readonly kind: "up"; readonly contact: Contact; readonly since: number }
  | { readonly kind: "down" }
  | { readonly kind: "over"; readonly error: Error };

/** A call that ends every connection must not reconnect forever. */
const maxSends = 10;
const waits: ReadonlySet<string> = new Set(["delivery/wait", "prompt/wait", "session/waitForIdle"]);
/** The close code for a request that is longer than the daemon accepts: one of the unanswered ones. */
const tooLargeCode = 1009;
/** How long a call waits after a daemon that shuts down refused it, if the connection stays open. */
const retryAfterShutdownMs = 200;

/** The client's connection to the daemon, over any number of channels, one at a time. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #waiting = new WaitingCalls();
  readonly #closed = Promise.withResolvers<ConnectionEnd>();
  readonly #over = new AbortController();
  readonly #inFlight = new Set<PendingCall>();
  #tooLarge: PendingCall | undefined;
  #state: State = { kind: "down" };
  #lastOrder = 0;
  /** Attempts since the last stable connection. */
  #attempts = 0;

  private constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  /** Makes the first connection, in one attempt. */
  static async open(options: ConnectionOptions, signal?: AbortSignal): Promise<Connection> {
    const connection = new Connection(options);
    connection.#adopt(await connection.#contact(signal));
    return connection;
  }

  /** Resolves when it has ended permanently and the last socket is closed. Never rejects. */
  get closed(): Promise<ConnectionEnd> {
    return this.#closed.promise;
  }

  /**
   * Sends a request, now or when a connection is open, and again if `repeat` allows it. Rejects with the daemon's error,
   * the signal's reason, `ConnectionClosedError`, `WaitingOverflowError`, or the error that ended the connection permanently.
   */
  request(method: string, params: unknown, { signal, repeat, onAnswer }: RequestOptions): Promise<unknown> {
    const outcome = Promise.withResolvers<unknown>();
    this.#lastOrder += 1;
    const call: PendingCall = {
      order: this.#lastOrder,
      method,
      params,
      signal,
      repeat,
      onAnswer,
      outcome,
      sends: 0,
    };
    if (signal?.aborted === true) outcome.reject(signal.reason);
    else if (this.#state.kind === "over") outcome.reject(this.#state.error);
    else if (this.#state.kind === "up") this.#send(call, this.#state.contact);
    else this.#wait(call);
    return outcome.promise;
  }

  /** Ends it permanently, with close code 1000. Idempotent: every call returns the promise {@link closed}. */
  close(): Promise<ConnectionEnd> {
    if (this.#state.kind === "up") {
      void this.#state.contact.channel.close();
    } else if (this.#state.kind === "down") {
      const end: ConnectionEnd = { kind: "closed", code: 1000, reason: "closed by the client" };
      this.#finish(end, new ConnectionClosedError(end));
    }
    return this.closed;
  }

  /** Ends it permanently because of an error of the daemon. */
  fail(error: Error): void {
    if (this.#state.kind === "up") this.#state.contact.channel.fail(error);
  }

  #send(call: PendingCall, { channel }: Contact): void {
    call.sends += 1;
    this.#inFlight.add(call);
    channel
      .request(call.method, call.params, call.signal, (answer) => {
        if ("result" in answer) call.onAnswer?.(answer.result);
        // Otherwise it will be sent again.
        else if (!isRefusedByShutdown(answer.error, call.repeat)) call.onAnswer?.(undefined);
      })
      .finally(() => this.#inFlight.delete(call))
      .then(call.outcome.resolve, (error: unknown) => this.#failed(call, channel, error));
  }

  #failed(call: PendingCall, { ending }: Channel, error: unknown): void {
    const { outcome, method, repeat, signal } = call;
    if (this.#state.kind === "over") {
      outcome.reject(error);
    } else if (ending !== undefined && error === ending.error) {
      // A wait is too small to be the cause of lost connections.
      const isSpent = call === this.#tooLarge || (call.sends >= maxSends && !waits.has(method));
      if (repeat === "never" || isSpent) outcome.reject(new ConnectionClosedError(ending.end, method));
      else this.#waiting.add(call);
    } else if (isRefusedByShutdown(error, repeat) && signal?.aborted !== true && call.sends < maxSends) {
      this.#waiting.add(call);
      pause(retryAfterShutdownMs, this.#over.signal).then(
        () => this.#release(),
        () => {},
      );
    } else {
      outcome.reject(error);
    }
  }

  #wait(call: PendingCall): void {
    const { maxWaitingCalls = 0, maxWaitingChars = 0 } = this.#options.reconnect ?? {};
    let chars: number;
    try {
      chars = JSON.stringify(call.params).length;
    } catch (error) {
      call.outcome.reject(error);
      return;
    }
    if (this.#waiting.count >= maxWaitingCalls) {
      call.outcome.reject(new WaitingOverflowError(call.method, `maxWaitingCalls (${maxWaitingCalls})`));
    } else if (this.#waiting.chars + chars > maxWaitingChars) {
      call.outcome.reject(new WaitingOverflowError(call.method, `maxWaitingChars (${maxWaitingChars})`));
    } else {
      this.#waiting.add(call, chars);
    }
  }

  /** Sends the waiting calls if a connection is open. */
  #release(): void {
    if (this.#state.kind !== "up") return;
    const { contact } = this.#state;
    for (const call of this.#waiting.takeAll()) this.#send(call, contact);
  }

  async #contact(signal: AbortSignal | undefined): Promise<Contact> {
    const { dial, instance, connectTimeoutMs, onNotification, onDiagnostic } = this.#options;
    const deadline = AbortSignal.timeout(connectTimeoutMs);
    const either = signal === undefined ? deadline : AbortSignal.any([signal, deadline]);
    let channel: Channel | undefined;
    try {
      channel = await dial(
        { onNotification, onDiagnostic, onEnd: (end, error) => this.#ended(channel, end, error) },
        either,
      );
      const daemon = await greet(channel, instance, either);
      introduce(channel, this.#options.client);
      return { channel, daemon };
    } catch (error) {
      await channel?.close();
      if (error !== deadline.reason || !deadline.aborted) throw error;
      throw new TimeoutError(`Connecting to the daemon took longer than ${connectTimeoutMs} ms.`, { cause: error });
    }
  }

  #adopt(contact: Contact): void {
    const { ending } = contact.channel;
    this.#state = { kind: "up", contact, since: performance.now() };
    if (ending !== undefined) this.#ended(contact.channel, ending.end, ending.error);
  }

  /** A channel has ended. Only the end of the current one counts. */
  #ended(channel: Channel | undefined, end: ConnectionEnd, error: Error): void {
    if (this.#state.kind !== "up" || this.#state.contact.channel !== channel) return;
    const { contact, since } = this.#state;
    if (this.#options.reconnect === undefined || end.kind !== "ended" || isTooLarge(end)) {
      this.#finish(end, error);
      return;
    }
    if (performance.now() - since >= stableAfterMs) this.#attempts = 0;
    if (end.code === tooLargeCode) this.#tooLarge = largest(this.#inFlight);
    this.#state = { kind: "down" };
    this.#options.onDown();
    void this.#reconnect(this.#options.reconnect, contact.daemon, error);
  }

  async #reconnect(policy: ReconnectPolicy, daemonBefore: string, lost: Error): Promise<void> {
    const startedAt = performance.now();
    const signal =
      policy.signal === undefined ? this.#over.signal : AbortSignal.any([this.#over.signal, policy.signal]);
    let reason = lost;
    for (;;) {
      const elapsedMs = performance.now() - startedAt;
      const next = nextTry(policy, { attempt: this.#attempts + 1, elapsedMs, random: Math.random() });
      if (next.kind === "give_up") {
        this.#fail(new ReconnectFailedError({ attempts: this.#attempts, elapsedMs, cause: reason }));
        return;
      }
      this.#attempts += 1;
      this.#options.onEvent({ kind: "lost", reason, attempt: this.#attempts, nextTryInMs: next.delayMs });
      try {
        await pause(next.delayMs, signal);
        const contact = await this.#contact(signal);
        if (signal.aborted) await contact.channel.close();
        signal.throwIfAborted();
        this.#resume(contact, daemonBefore);
        return;
      } catch (error) {
        if (this.#state.kind === "over") return;
        reason = error instanceof Error ? error : new Error(String(error), { cause: error });
        if (signal.aborted || isFinal(error)) {
          this.#fail(reason);
          return;
        }
      }
    }
  }

  #resume(contact: Contact, daemonBefore: string): void {
    this.#adopt(contact);
    if (this.#state.kind !== "up") return;
    this.#options.onUp();
    this.#release();
    this.#options.onEvent({ kind: "connected", daemon: contact.daemon === daemonBefore ? "same" : "another" });
  }

  #fail(error: Error): void {
    this.#finish({ kind: "failed", code: 1006, reason: "reconnecting failed", error }, error);
  }

  #finish(end: ConnectionEnd, error: Error): void {
    const channel = this.#state.kind === "up" ? this.#state.contact.channel : undefined;
    this.#state = { kind: "over", error };
    this.#over.abort(error);
    this.#options.onOver(end, error);
    for (const call of this.#waiting.takeAll()) call.outcome.reject(error);
    if (channel === undefined) this.#closed.resolve(end);
    else void channel.closed.then(this.#closed.resolve);
    this.#options.onEvent({ kind: "closed", end });
  }
}

function largest(calls: Iterable<PendingCall>): PendingCall | undefined {
  const sized = Array.from(calls, (call) => ({ call, size: JSON.stringify(call.params)?.length ?? 0 }));
  return sized.reduce<(typeof sized)[number] | undefined>(
    (a, b) => (a !== undefined && a.size >= b.size ? a : b),
    undefined,
  )?.call;
}

/** Whether a daemon that shuts down did not perform the call, so that the call can go to the next daemon. */
function isRefusedByShutdown(error: unknown, repeat: Repeat): boolean {
  if (!(error instanceof WireError)) return false;
  return (error.kind === "cancelled" && repeat !== "never") || (error.kind === "shutting_down" && repeat === "always");
}

/** Whether the daemon sent a larger frame than this client accepts: it would send the frame again. */
function isTooLarge({ error }: ConnectionEnd): boolean {
  return (error as { readonly code?: unknown } | undefined)?.code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH";
}

/** The first request of each connection. Throws if it is another daemon or speaks another protocol; returns the name of its process. */
async function greet(channel: Channel, instance: string | undefined, signal: AbortSignal): Promise<string> {
  const info = (await channel.request("daemon/info", {}, signal)) as Readonly<Record<string, unknown>> | null;
  const { protocol, version, pid, startedAt } = info ?? {};
  if (instance !== undefined && info?.["instance"] !== instance) throw new AnotherDaemonError();
  if (protocol === PROTOCOL_VERSION) return `${pid} ${startedAt}`;
  if (typeof protocol !== "number") {
    throw new ProtocolViolationError("result of daemon/info", [{ path: "/protocol", message: "is not a number" }]);
  }
  const daemonVersion = String(version);
  throw new ProtocolMismatchError({ client: PROTOCOL_VERSION, daemon: protocol, daemonVersion });
}

/** Tells the daemon which client it is. Not awaited: the daemon handles later requests after this one. */
function introduce(channel: Channel, client: ClientIdentity): void {
  // A daemon without this method identifies the client by its connection.
  channel.request("daemon/hello", { client }).catch(() => {});
}
