import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import type { WaitUntil } from "../../protocol/delivery.ts";
import { type DeliveryProgress, outcomeOf } from "../delivery/progress.ts";
import type { Engine } from "../engine-port.ts";
import { DeliveryInputError, failureOf, UnknownDeliveryError, WaitTimeoutError } from "./errors.ts";
import { openEngine } from "./open.ts";

export interface WaitOptions {
  /** Default: `delivered`. */
  readonly until?: WaitUntil;
  /** Ends the wait with the signal's reason; the delivery goes on. */
  readonly signal?: AbortSignal;
  /** From 0 (the state now) to 2,147,483,647, or Infinity. Default: 60,000. */
  readonly timeoutMs?: number;
}

const defaultTimeoutMs = 60_000;
/** Node's maximum timer delay. */
const maxTimeoutMs = 2_147_483_647;
const untils: ReadonlySet<unknown> = new Set<WaitUntil>(["inserted", "prepared", "delivered", "answered"]);

/**
 * Waits until a delivery of this pi reaches a state; the delivery may come from `deliver`, another extension or a
 * client of the daemon. Resolves at once if the state was already reached. The returned progress can be beyond the
 * requested state.
 *
 * Rejects with `DeliveryFailedError` when the delivery is parked or can no longer reach the state, `WaitTimeoutError`
 * (nothing is cancelled), the signal's reason, `SessionReplacedError`, `ShutDownError`, `UnknownDeliveryError`,
 * `DeliveryInputError`. Rejections never count as unhandled, and a wait does not keep pi alive.
 */
export function waitForMessageDelivered(
  pi: ExtensionAPI,
  deliveryId: string,
  options: WaitOptions = {},
): Promise<DeliveryProgress> {
  const promise = check(pi, deliveryId, options);
  promise.catch(() => {});
  return promise;
}

async function check(pi: ExtensionAPI, deliveryId: string, options: WaitOptions): Promise<DeliveryProgress> {
  const { until = "delivered", signal, timeoutMs = defaultTimeoutMs } = options;
  if (!untils.has(until))
    throw new DeliveryInputError("until", "until must be inserted, prepared, delivered or answered.");
  if (
    typeof timeoutMs !== "number" ||
    !(timeoutMs === Number.POSITIVE_INFINITY || (timeoutMs >= 0 && timeoutMs <= maxTimeoutMs))
  ) {
    throw new DeliveryInputError("timeoutMs", `timeoutMs must be Infinity or a number from 0 to ${maxTimeoutMs}.`);
  }
  return await waitFor(openEngine(pi), deliveryId, until, { signal, timeoutMs });
}

/** {@link waitForMessageDelivered} for validated arguments. */
export async function waitFor(
  engine: Engine,
  deliveryId: string,
  until: WaitUntil,
  { signal, timeoutMs }: { readonly signal: AbortSignal | undefined; readonly timeoutMs: number },
): Promise<DeliveryProgress> {
  signal?.throwIfAborted();
  const now = engine.progress(deliveryId);
  if (now === undefined) throw new UnknownDeliveryError(deliveryId);
  const { promise, resolve, reject } = Promise.withResolvers<DeliveryProgress>();
  const look = (progress: DeliveryProgress): boolean => {
    const outcome = outcomeOf(progress, until);
    if (outcome === "reached") resolve(progress);
    else if (outcome === "unmet") reject(failureOf(progress, until));
    return outcome !== "open";
  };
  if (look(now)) return await promise;
  if (timeoutMs === 0) throw new WaitTimeoutError(now, until, timeoutMs);

  const unwatch = engine.follow(deliveryId, look);
  const abort = (): void => reject(signal?.reason);
  signal?.addEventListener("abort", abort, { once: true });
  const timer = timeoutMs === Number.POSITIVE_INFINITY ? undefined : setTimeout(() => expire(), timeoutMs).unref();
  const expire = (): void => reject(new WaitTimeoutError(engine.progress(deliveryId) ?? now, until, timeoutMs));
  try {
    return await promise;
  } finally {
    unwatch?.();
    signal?.removeEventListener("abort", abort);
    clearTimeout(timer);
  }
}
