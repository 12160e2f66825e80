import type { WaitUntil } from "../../protocol/delivery.ts";
import type { DeliveryProgress } from "../delivery/progress.ts";

/** What goes wrong in the calls of `pi-rpcd/extension`. `kind` is for programs, `message` reads as help. */
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

/** What is wrong with the arguments of a call. Nothing was done. */
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

/** A thousand deliveries of this session are on their way: wait for some. */
export class TooManyDeliveriesError extends ExtensionApiError {
  override readonly name = "TooManyDeliveriesError";
  readonly kind = "tooManyDeliveries";

  constructor() {
    super("Too many deliveries of this session are on their way. Wait for some of them.");
  }
}

/** `openDelivery` was not called while the extension was loaded, so that pi's events were missed. */
export class NotOpenError extends ExtensionApiError {
  override readonly name = "NotOpenError";
  readonly kind = "notOpen";

  constructor() {
    super("Delivery is not open in this pi: call openDelivery(pi) in the extension's entry function.");
  }
}

/** No delivery of this pi has the id, or it ended long ago. */
export class UnknownDeliveryError extends ExtensionApiError {
  override readonly name = "UnknownDeliveryError";
  readonly kind = "unknownDelivery";
  readonly deliveryId: string;

  constructor(deliveryId: string) {
    super(`No delivery of this pi has the id ${JSON.stringify(deliveryId)}.`);
    this.deliveryId = deliveryId;
  }
}

/** The state was not reached in the time given. Nothing was cancelled. */
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

/** The session was replaced, or the extensions were reloaded, so that this extension's `pi` is of no use any more. */
export class SessionReplacedError extends ExtensionApiError {
  override readonly name = "SessionReplacedError";
  readonly kind = "sessionReplaced";
  /** How far the delivery had come, where there was one. */
  readonly progress: DeliveryProgress | undefined;

  constructor(progress?: DeliveryProgress) {
    super("The session was replaced by another.");
    this.progress = progress;
  }
}

/** pi ends. */
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
 * The delivery is parked (a later run carries it), or has ended, without the state that was waited for.
 * `progress.reason` says why.
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

/** The error of a wait that ends without what it waited for. */
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
