import { v7 as uuidv7 } from "uuid";
import type { By } from "../../protocol/client-identity.ts";
import type { Content } from "../../protocol/content.ts";
import type { Delivery } from "../../protocol/delivery.ts";
import { WireError } from "../../protocol/errors.ts";
import type { Params } from "../../protocol/methods.ts";
import { nonFiniteIn } from "../../protocol/non-finite.ts";
import type { StoredPush } from "../store/deliveries.ts";

/**
 * The push of a call's params, with all defaults. Throws `invalid_params` for a number that JSON cannot represent.
 */
export function acceptedPush(params: Params<"delivery/push">): StoredPush {
  const path = nonFiniteIn(params.details);
  if (path !== undefined) {
    throw new WireError("invalid_params", "`details` contains a number outside the range of a double.", {
      findings: [{ path: `/details${path}`.slice(0, 1_024), message: "must be a number of at most 1.797e308" }],
    });
  }
  return {
    deliveryId: params.deliveryId ?? uuidv7(),
    customType: params.customType,
    content: params.content,
    display: params.display ?? true,
    ...(params.details === undefined ? {} : { details: params.details as Record<string, unknown> }),
    deliverAs: params.deliverAs ?? "steer",
    triggerTurn: params.triggerTurn ?? true,
    onAbort: params.onAbort ?? "park",
    ...(params.onClearQueue === "drop" ? { onClearQueue: "drop" } : {}),
    ...(params.expiresAfterMs === undefined ? {} : { expiresAfterMs: params.expiresAfterMs }),
  };
}

/** The record of a new push. */
export function newDelivery(sessionId: string, push: StoredPush, by?: By): Delivery {
  const at = Date.now();
  return {
    deliveryId: push.deliveryId,
    sessionId,
    state: "accepted",
    customType: push.customType,
    preview: previewOf(push.content),
    deliverAs: push.deliverAs,
    triggerTurn: push.triggerTurn,
    attempts: [],
    history: [{ state: "accepted", at, ...(by === undefined ? {} : { by }) }],
    createdAt: at,
    updatedAt: at,
    ...(push.expiresAfterMs === undefined ? {} : { expiresAt: at + push.expiresAfterMs }),
  };
}

const previewLength = 200;

function previewOf(content: Content): string {
  const text = typeof content === "string" ? content : textsOf(content);
  // Whole characters: half of a surrogate pair is no text.
  return text.slice(0, previewLength).replace(/[\uD800-\uDBFF]$/, "");
}

function textsOf(blocks: Exclude<Content, string>): string {
  return blocks.flatMap((block) => (block.type === "text" ? [block.text] : [])).join("\n");
}

const sizes = new WeakMap<StoredPush, number>();

/** Bytes of a push as JSON. */
export function sizeOf(push: StoredPush): number {
  let size = sizes.get(push);
  if (size === undefined) {
    size = Buffer.byteLength(JSON.stringify(push));
    sizes.set(push, size);
  }
  return size;
}
