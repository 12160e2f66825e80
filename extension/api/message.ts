import { randomUUID } from "node:crypto";
import type { Content } from "../../protocol/content.ts";
import type { DeliverAs } from "../../protocol/delivery.ts";
import { CARRIER_TYPE, type HeldPush } from "../../protocol/link.ts";
import { nonFiniteIn } from "../../protocol/non-finite.ts";
import { isDeliveryId } from "../delivery/marker.ts";
import { whatIsWrongWith } from "../link/inward-frame.ts";
import { isObject } from "../pi-types.ts";
import { DeliveryInputError, type WrongInput } from "./errors.ts";

/** A custom message for the model, as pi's `sendMessage` takes it. */
export interface DeliveryMessage {
  /** What kind of message it is, for renderers: up to 256 characters. */
  readonly customType: string;
  /** A text, or up to 256 blocks of text and images. Text of white space alone is no content. */
  readonly content: Content;
  /** Whether people see it. Default: true. */
  readonly display?: boolean;
  /** Kept beside the message and never sent to the model. JSON; the key `pi-rpcd` in it is ours. */
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface DeliverOptions {
  /**
   * During a run: `steer` enters the next request, `followUp` comes when the run would end. `nextTurn` waits for the next
   * prompt. Default: `steer`.
   */
  readonly deliverAs?: DeliverAs;
  /** Whether it starts a run while the agent is idle, or keeps one going that would end. Default: true. */
  readonly triggerTurn?: boolean;
  /** Letters, digits and `. _ : -`, the first a letter or digit; up to 128. Default: a UUID. */
  readonly deliveryId?: string;
  /**
   * Gives the message up if pi was not given it yet, and ends the waits of the returned promises with the signal's reason.
   * A message that pi has stays.
   */
  readonly signal?: AbortSignal;
  /** What an abort of the run does to it before pi has it: `park` keeps it for a later run. Default: `park`. */
  readonly onAbort?: "park" | "drop";
}

/** A whole message as JSON, in bytes: what the daemon takes as well. */
const maxBytes = 8 * 1024 * 1024;

/** The push that a message becomes, and what tells it from others of the same id. Throws {@link DeliveryInputError}. */
export function pushOf(message: DeliveryMessage, options: DeliverOptions): { push: HeldPush; fingerprint: string } {
  if (!isObject(message)) throw new DeliveryInputError("content", "The message is no object.");
  if (!isObject(options)) throw new DeliveryInputError("option", "The options are no object.");
  const { customType, content, display = true, details } = message;
  const { deliverAs = "steer", triggerTurn = true, deliveryId = randomUUID(), onAbort = "park" } = options;
  if (!isDeliveryId(deliveryId)) {
    throw new DeliveryInputError(
      "deliveryId",
      "A deliveryId has up to 128 letters, digits and . _ : -, the first a letter or digit.",
    );
  }
  if (typeof customType !== "string" || customType === CARRIER_TYPE) {
    throw new DeliveryInputError("customType", "The customType is no text, or is pi-rpcd's own.");
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
  if (path !== undefined)
    throw new DeliveryInputError("details", `The number at ${path} in the details is not finite.`);
  const bytes = Buffer.byteLength(fingerprint);
  if (bytes > maxBytes) {
    throw new DeliveryInputError("contentTooLarge", `The message has ${bytes} bytes; the limit is ${maxBytes}.`);
  }
  // A copy: what the caller does to its objects later changes nothing.
  const copy = JSON.parse(fingerprint) as HeldPush;
  const wrong = whatIsWrongWith(copy);
  if (wrong !== undefined) throw new DeliveryInputError(fieldIn(wrong), wrong);
  return { push: copy, fingerprint };
}

function checkContent(content: unknown): void {
  const texts =
    typeof content === "string" ? [content] : Array.isArray(content) ? content.map(textOf) : ([undefined] as const);
  if (texts.every((text) => text !== undefined && text.trim() === "")) {
    throw new DeliveryInputError("emptyContent", "The content is empty: the model would get nothing.");
  }
}

/** A block that is no text counts as some content: whether it is an image is looked at later. */
function textOf(block: unknown): string | undefined {
  return isObject(block) && block["type"] === "text" && typeof block["text"] === "string" ? block["text"] : undefined;
}

function jsonOf(push: object): string {
  try {
    return JSON.stringify(push);
  } catch (thrown) {
    throw new DeliveryInputError(
      "details",
      `The message is not JSON: ${thrown instanceof Error ? thrown.message : thrown}`,
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
