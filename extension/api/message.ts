import { randomUUID } from "node:crypto";
import type { Content } from "../../protocol/content.ts";
import type { DeliverAs } from "../../protocol/delivery.ts";
import { CARRIER_TYPE } from "../../protocol/link.ts";
import type { HeldPush } from "../../protocol/link-inward.ts";
import { nonFiniteIn } from "../../protocol/non-finite.ts";
import { isRecord } from "../../protocol/objects.ts";
import { isDeliveryId } from "../delivery/marker.ts";
import { pushError } from "../link/inward-frame.ts";
import { DeliveryInputError, SessionReplacedError, TooManyDeliveriesError, type WrongInput } from "./errors.ts";

/** A custom message for the model, as pi's `sendMessage` takes it. */
export interface DeliveryMessage {
  /** Message kind for renderers, up to 256 characters. */
  readonly customType: string;
  /** A text, or up to 256 blocks of text and images. Text that is only white space is rejected. */
  readonly content: Content;
  /** Whether the message is shown to people. Default: true. */
  readonly display?: boolean;
  /** JSON stored with the message and never sent to the model. The key `pi-rpcd` is reserved. */
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface DeliverOptions {
  /**
   * During a run: `steer` enters the next request, `followUp` comes when the run would end. `nextTurn` waits for the next
   * prompt. Default: `steer`.
   */
  readonly deliverAs?: DeliverAs;
  /** Whether the message starts a run while the agent is idle, or continues a run that would end. Default: true. */
  readonly triggerTurn?: boolean;
  /** Up to 128 letters, digits and `. _ : -`, starting with a letter or digit. Default: a UUID. */
  readonly deliveryId?: string;
  /** Cancels the message unless pi already has it, and rejects the returned promises with the signal's reason. */
  readonly signal?: AbortSignal;
  /**
   * Effect of an aborted run on a message that pi does not have yet: `park` keeps it for a later run. Default: `park`.
   */
  readonly onAbort?: "park" | "drop";
}

/** Size limit of a message as JSON, in bytes; the same as the daemon's. */
const maxBytes = 8 * 1024 * 1024;

/** Converts a message to a push, with a fingerprint that detects a reused id. Throws {@link DeliveryInputError}. */
export function pushOf(message: DeliveryMessage, options: DeliverOptions): { push: HeldPush; fingerprint: string } {
  if (!isRecord(message)) throw new DeliveryInputError("content", "The message is not an object.");
  if (!isRecord(options)) throw new DeliveryInputError("option", "The options are not an object.");
  const { customType, content, display = true, details } = message;
  const { deliverAs = "steer", triggerTurn = true, deliveryId = randomUUID(), onAbort = "park" } = options;
  if (!isDeliveryId(deliveryId)) {
    throw new DeliveryInputError(
      "deliveryId",
      "A deliveryId must be up to 128 letters, digits and . _ : -, starting with a letter or digit.",
    );
  }
  if (typeof customType !== "string" || customType === CARRIER_TYPE) {
    throw new DeliveryInputError("customType", "customType must be a string other than pi-rpcd's own type.");
  }
  checkContent(content);
  const push = {
    deliveryId,
    customType,
    content,
    display,
    deliverAs,
    triggerTurn,
    onAbort,
    ...(details && { details }),
  };
  const fingerprint = jsonOf(push);
  const path = nonFiniteIn(details);
  if (path !== undefined) throw new DeliveryInputError("details", `The number at ${path} in details is not finite.`);
  const bytes = Buffer.byteLength(fingerprint);
  if (bytes > maxBytes) {
    throw new DeliveryInputError("contentTooLarge", `The message has ${bytes} bytes; the limit is ${maxBytes}.`);
  }
  // A copy protects the push from later changes by the caller.
  const copy = JSON.parse(fingerprint) as HeldPush;
  const wrong = pushError(copy);
  if (wrong !== undefined) throw new DeliveryInputError(fieldIn(wrong), wrong);
  return { push: copy, fingerprint };
}

function checkContent(content: unknown): void {
  const texts =
    typeof content === "string" ? [content] : Array.isArray(content) ? content.map(textOf) : ([undefined] as const);
  if (texts.every((text) => text !== undefined && text.trim() === "")) {
    throw new DeliveryInputError("emptyContent", "The content is empty.");
  }
}

/** Blocks other than text count as content here; `pushError` validates them. */
function textOf(block: unknown): string | undefined {
  return isRecord(block) && block["type"] === "text" && typeof block["text"] === "string" ? block["text"] : undefined;
}

function jsonOf(push: object): string {
  try {
    return JSON.stringify(push);
  } catch (thrown) {
    throw new DeliveryInputError(
      "details",
      `The message cannot be written as JSON: ${thrown instanceof Error ? thrown.message : thrown}`,
    );
  }
}

const fields: readonly WrongInput[] = [
  "customType",
  "content",
  "display",
  "details",
  "deliverAs",
  "triggerTurn",
  "onAbort",
];

function fieldIn(sentence: string): WrongInput {
  return fields.find((field) => sentence.endsWith(` ${field}.`)) ?? "option";
}

/**
 * `known`: the same push exists; `reused`: the id belongs to a different push; `full`: too many are open; `closed`: these
 * extension instances have ended.
 */
export type PushResult = "taken" | "known" | "reused" | "full" | "closed";

/** Throws unless the engine has taken the push. */
export function accept(result: PushResult, deliveryId: string): void {
  switch (result) {
    case "taken":
    case "known":
      return;
    case "reused":
      throw new DeliveryInputError(
        "deliveryIdReused",
        `The deliveryId ${deliveryId} is already used by another message.`,
      );
    case "full":
      throw new TooManyDeliveriesError();
    case "closed":
      throw new SessionReplacedError();
  }
}
