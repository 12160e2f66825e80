import type { WaitUntil } from "../../protocol/delivery.ts";
import type { DeliveryProgress } from "../delivery/progress.ts";

/** Base class of the errors of `pi-rpcd/extension`. `kind` is for programs, `message` for people. */
export abstract class ExtensionApiError extends Error {
  abstract readonly kind: string;
}

/** `ctx.ui.custom()` was called in a session whose `customUi` is `throw`: in RPC mode pi has no terminal to draw on. */
export class CustomUiUnsupportedError extends ExtensionApiError {
  override readonly name = "CustomUiUnsupportedError";
  readonly kind = "customUiUnsupported";

  constructor() {
    super("ctx.ui.custom() needs a terminal, and this pi runs in RPC mode. Use select, confirm, input or editor.");
  }
}

/** The invalid argument of a call. The call had no effect. */
export type WrongInput =
  | "customType"
  | "emptyContent"
  | "content"
  | "contentTooLarge"
  | "display"
  | "details"
  | "deliverAs"
  | "triggerTurn"
  | "onAbort"
  | "deliveryId"
  | "deliveryIdReused"
  | "until"
  | "timeoutMs"
  | "option";

export class DeliveryInputError extends ExtensionApiError {
  override readonly name = "DeliveryInputError";
  readonly kind: WrongInput;

  constructor(kind: WrongInput, message: string) {
    super(message);
    this.kind = kind;
  }
}

/** The session has 1,000 open deliveries, which is the limit. */
export class TooManyDeliveriesError extends ExtensionApiError {
  override readonly name = "TooManyDeliveriesError";
  readonly kind = "tooManyDeliveries";

  constructor() {
    super("This session has too many open deliveries. Wait for some of them to end.");
  }
}

/** `openDelivery` was not called while the extension was loaded, so pi's events were missed. */
export class NotOpenError extends ExtensionApiError {
  override readonly name = "NotOpenError";
  readonly kind = "notOpen";

  constructor() {
    super("Delivery is not open in this pi: call openDelivery(pi) in the extension's entry function.");
  }
}

/** This pi has no delivery with the id, or the delivery ended long ago. */
export class UnknownDeliveryError extends ExtensionApiError {
  override readonly name = "UnknownDeliveryError";
  readonly kind = "unknownDelivery";
  readonly deliveryId: string;

  constructor(deliveryId: string) {
    super(`This pi has no delivery with the id ${JSON.stringify(deliveryId)}.`);
    this.deliveryId = deliveryId;
  }
}

/** The state was not reached within the timeout. The delivery continues. */
export class WaitTimeoutError extends ExtensionApiError {
  override readonly name = "WaitTimeoutError";
  readonly kind = "timeout";
  readonly progress: DeliveryProgress;
  readonly until: WaitUntil;

  constructor(progress: DeliveryProgress, until: WaitUntil, timeoutMs: number) {
    super(`Delivery ${progress.deliveryId} was not ${until} within ${timeoutMs} ms: it is ${progress.state}.`);
    this.progress = progress;
    this.until = until;
  }
}

/** The session was replaced, or the extensions were reloaded, so this extension's `pi` is no longer valid. */
export class SessionReplacedError extends ExtensionApiError {
  override readonly name = "SessionReplacedError";
  readonly kind = "sessionReplaced";
  /** Progress of the delivery, if there was one. */
  readonly progress: DeliveryProgress | undefined;

  constructor(progress?: DeliveryProgress) {
    super("The session was replaced by another.");
    this.progress = progress;
  }
}

/** pi is shutting down. */
export class ShutDownError extends ExtensionApiError {
  override readonly name = "ShutDownError";
  readonly kind = "shutDown";
  readonly progress: DeliveryProgress | undefined;

  constructor(progress?: DeliveryProgress) {
    super("pi has ended the session.");
    this.progress = progress;
  }
}

/**
 * The delivery is parked (a later run carries it), or has ended before the awaited state. `progress.reason` says why.
 */
export class DeliveryFailedError extends ExtensionApiError {
  override readonly name = "DeliveryFailedError";
  readonly kind: "parked" | "unanswered" | "ended";
  readonly progress: DeliveryProgress;
  readonly until: WaitUntil;

  constructor(progress: DeliveryProgress, until: WaitUntil) {
    const { deliveryId, state, reason, error } = progress;
    const why = reason === undefined ? "" : ` (${reason.code}): ${reason.message}`;
    const words = error === undefined ? "" : ` The provider's words: ${error}`;
    super(`Delivery ${deliveryId} is not ${until}: it is ${state}${why}${words}`);
    this.kind = state === "parked" ? "parked" : state === "delivered" ? "unanswered" : "ended";
    this.progress = progress;
    this.until = until;
  }
}

/** Returns the error for a wait that ended before its state was reached. */
export function failureOf(progress: DeliveryProgress, until: WaitUntil): ExtensionApiError {
  switch (progress.reason?.code) {
    case "session_replaced":
      return new SessionReplacedError(progress);
    case "session_closed":
      return new ShutDownError(progress);
    default:
      return new DeliveryFailedError(progress, until);
  }
}
