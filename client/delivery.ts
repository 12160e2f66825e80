import type { Delivery, DeliveryState, WaitUntil } from "../protocol/delivery.ts";
import { WireError } from "../protocol/errors.ts";
import type { CallOptions, DaemonPeer } from "./daemon-peer.ts";
import { DeliveryUpdates } from "./delivery-updates.ts";
import { type KnownDelivery, verdict } from "./known-delivery.ts";
import { DeliveryError } from "./local-errors.ts";

export interface DeliveryHandleOptions {
  readonly peer: DaemonPeer;
  readonly sessionId: string;
  readonly id: string;
  /** Resolves when the daemon has confirmed that it has the delivery. */
  readonly accepted: Promise<Delivery>;
  /** Ends the waits of the handle's promises. */
  readonly signal?: AbortSignal | undefined;
}

/** How long one `delivery/wait` runs before it is repeated. Only its signal ends a wait. */
const waitTimeoutMs = 600_000;

/**
 * One push on its way to the model.
 *
 * It is not a promise: `session.push()` returns it at once, and `await session.push()` returns the same object without
 * waiting. Await what you need: `accepted` (the daemon has stored it), `inserted`, `prepared`, `delivered` (the provider
 * has accepted a request that contains it) or `answered`. Each promise works without the others, starts to wait when it is
 * first read, and resolves at once if the state was reached before.
 *
 * They resolve with the delivery's record, whose `state` may be a later one. They reject with `DeliveryError` if the
 * delivery is parked or ends without the state, with the daemon's `WireError` if the push was refused or the delivery is
 * no longer known (`delivery_not_found`), and with the error that ended the client.
 *
 * They survive lost connections and restarts of the daemon: a push whose answer was lost is sent again with the same
 * `deliveryId`, so that it is stored once, and a wait is repeated. A client that does not reconnect rejects them with
 * `ConnectionClosedError`; its push can be repeated with the same `deliveryId`.
 *
 * A later run delivers a parked delivery. A promise that was rejected for it waits again when it is read again.
 */
export class DeliveryHandle {
  /** The delivery's id: the given one, else a UUIDv7 of this client. */
  readonly id: string;
  readonly sessionId: string;
  /** The record as the daemon stored it. */
  readonly accepted: Promise<Delivery>;
  readonly #peer: DaemonPeer;
  readonly #known: KnownDelivery;
  readonly #signal: AbortSignal | undefined;
  readonly #promises = new Map<WaitUntil, Promise<Delivery>>();

  /** Use `SessionHandle.push()` or `SessionHandle.delivery()`. */
  constructor({ peer, sessionId, id, accepted, signal }: DeliveryHandleOptions) {
    this.id = id;
    this.sessionId = sessionId;
    this.#peer = peer;
    this.#signal = signal;
    const known = peer.deliveries.of(id);
    this.#known = known;
    this.accepted = accepted.then((delivery) => {
      known.learn(delivery);
      return delivery;
    });
    this.accepted.catch(() => {});
  }

  /** The newest record that this client has. Updated while the session is subscribed or a promise waits. */
  get current(): Delivery | undefined {
    return this.#known.current;
  }

  /** The state in {@link current}; undefined until the daemon has answered the push. */
  get state(): DeliveryState | undefined {
    return this.current?.state;
  }

  /** The session's transcript contains it. */
  get inserted(): Promise<Delivery> {
    return this.#promise("inserted");
  }

  /** A request that is about to be sent to the provider contains it. */
  get prepared(): Promise<Delivery> {
    return this.#promise("prepared");
  }

  /** The provider accepted a request that contains it: `evidence` says how that is known. */
  get delivered(): Promise<Delivery> {
    return this.#promise("delivered");
  }

  /** The model has answered that request completely. */
  get answered(): Promise<Delivery> {
    return this.#promise("answered");
  }

  /** Waits as the promises above do. `signal` ends the wait, not the delivery. */
  async wait(until: WaitUntil = "delivered", options: CallOptions = {}): Promise<Delivery> {
    await unlessAborted(this.accepted, options.signal);
    const known = this.current;
    // A run may have resumed a parked delivery since: the daemon knows.
    if (known !== undefined && known.state !== "parked") {
      const now = verdict(known, until);
      if (now === "reached") return known;
      if (now === "unmet") throw new DeliveryError(known, until);
    }
    return this.#outcome(until, options);
  }

  /** Asks the daemon for the current record. */
  async get(options: CallOptions = {}): Promise<Delivery> {
    const delivery = await this.#peer.call("delivery/get", { deliveryId: this.id }, options);
    this.#known.learn(delivery);
    return delivery;
  }

  /**
   * Withdraws the push if the transcript does not contain it yet, and resolves with whether it was withdrawn. A waiting
   * promise of this handle then rejects with `DeliveryError`.
   */
  async cancel(options: CallOptions = {}): Promise<boolean> {
    await unlessAborted(this.accepted, options.signal);
    const { cancelled, delivery } = await this.#peer.call("delivery/cancel", { deliveryId: this.id }, options);
    this.#known.learn(delivery);
    return cancelled;
  }

  /** Sends a parked push with a run. Rejects with `wrong_state` if it is not parked. */
  async resend(options: CallOptions = {}): Promise<Delivery> {
    const delivery = await this.#peer.call("delivery/resend", { deliveryId: this.id }, options);
    this.#known.learn(delivery);
    return delivery;
  }

  /**
   * Streams the records as they change, beginning with the current one, until the last one. Subscribes to the session
   * until then. Steps between two records are in their `history`.
   */
  updates(options: CallOptions = {}): DeliveryUpdates {
    return new DeliveryUpdates({
      peer: this.#peer,
      sessionId: this.sessionId,
      known: this.#known,
      accepted: this.accepted,
      get: () => this.get(options),
      signal: options.signal,
    });
  }

  #promise(until: WaitUntil): Promise<Delivery> {
    const existing = this.#promises.get(until);
    if (existing !== undefined) return existing;
    const promise = this.wait(until, this.#signal === undefined ? {} : { signal: this.#signal });
    this.#promises.set(until, promise);
    promise.catch((error: unknown) => {
      if (error instanceof DeliveryError && error.delivery.state === "parked") this.#promises.delete(until);
    });
    return promise;
  }

  /** Waits for a notification of a subscribed session or the answer to `delivery/wait`, whichever comes first. */
  async #outcome(until: WaitUntil, options: CallOptions): Promise<Delivery> {
    const { promise, resolve, reject } = Promise.withResolvers<Delivery>();
    let open = true;
    const settle = (delivery: Delivery, last: boolean): void => {
      const now = verdict(delivery, until);
      if (now === "reached") resolve(delivery);
      else if (now === "unmet" || last) reject(new DeliveryError(delivery, until));
      else return;
      open = false;
    };
    const unwatch = this.#known.watch((delivery) => settle(delivery, false));
    const ask = async (): Promise<void> => {
      while (open) {
        try {
          const params = { deliveryId: this.id, until, timeoutMs: waitTimeoutMs };
          const delivery = await this.#peer.call("delivery/wait", params, options);
          this.#known.learn(delivery);
          settle(delivery, true);
        } catch (error) {
          if (!(error instanceof WireError) || error.kind !== "deadline_exceeded") throw error;
        }
      }
    };
    ask().catch(reject);
    try {
      return await promise;
    } finally {
      unwatch();
    }
  }
}

/** The promise's outcome, or the signal's reason if that comes first. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return promise;
  signal.throwIfAborted();
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = (): void => reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}
