import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { DeliveryProgress } from "../delivery/progress.ts";
import type { Engine } from "../engine-port.ts";
import { accept, type DeliverOptions, type DeliveryMessage, pushOf } from "./message.ts";
import { openEngine } from "./open.ts";
import { waitFor } from "./wait.ts";

/** A message on its way to the model. Each promise can be used, or left alone, without the other. */
export interface DeliveryTicket {
  readonly deliveryId: string;
  /**
   * The provider has accepted a request that carries the message; `evidence` names the proof. Rejects with
   * `DeliveryFailedError` when the message is parked or will never be delivered, with `SessionReplacedError`,
   * `ShutDownError`, or the signal's reason.
   */
  readonly delivered: Promise<DeliveryProgress>;
  /** The model has answered that request in full. Rejects as `delivered` does, and when the run ends without an answer. */
  readonly answered: Promise<DeliveryProgress>;
}

/**
 * Sends a custom message to the model, as `pi.sendMessage` does, and reports when the message arrives. The message is
 * handed to pi exactly once, between the turns of a run and never between a tool call and its result. It never waits in
 * pi's own queue, which loses messages silently.
 *
 * Throws before any effect: `DeliveryInputError` (`kind` names the invalid argument), `TooManyDeliveriesError`,
 * `NotOpenError`, `SessionReplacedError`. Repeating a `deliveryId` with the same message returns the existing delivery;
 * with a different message it fails with `deliveryIdReused`.
 */
export function deliver(pi: ExtensionAPI, message: DeliveryMessage, options: DeliverOptions = {}): DeliveryTicket {
  const engine = openEngine(pi);
  const { push, fingerprint } = pushOf(message, options);
  const { deliveryId } = push;
  const { signal } = options;
  if (signal?.aborted === true) {
    const aborted = (): Promise<never> => quiet(Promise.reject(signal.reason));
    return { deliveryId, delivered: aborted(), answered: aborted() };
  }
  accept(engine.push(push, fingerprint), deliveryId);
  const delivered = quiet(waitFor(engine, deliveryId, "delivered", { signal, timeoutMs: Number.POSITIVE_INFINITY }));
  const answered = quiet(waitFor(engine, deliveryId, "answered", { signal, timeoutMs: Number.POSITIVE_INFINITY }));
  if (signal !== undefined) cancelOnAbort(engine, deliveryId, signal, delivered);
  return { deliveryId, delivered, answered };
}

function cancelOnAbort(engine: Engine, deliveryId: string, signal: AbortSignal, delivered: Promise<unknown>): void {
  const cancel = (): void => {
    try {
      engine.cancel(deliveryId);
    } catch {
      // The session has just been replaced.
    }
  };
  signal.addEventListener("abort", cancel, { once: true });
  const done = (): void => signal.removeEventListener("abort", cancel);
  delivered.then(done, done);
}

/** An unhandled rejection would terminate pi. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
