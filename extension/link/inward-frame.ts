import { isAbsolute } from "node:path";
import type { Content } from "../../protocol/content.ts";
import { CARRIER_TYPE, type HeldPush, type InwardFrame } from "../../protocol/link.ts";
import { providerLevels } from "../../protocol/provider-level.ts";
import { isDeliveryId } from "../delivery/marker.ts";
import { isObject } from "../pi-types.ts";
import { whatIsWrongWithContext } from "./context-frame.ts";
import { whatIsWrongWithParts } from "./parts-config.ts";

/** A frame whose shape is wrong. `rid` is there when it can be answered. */
export class FrameError extends Error {
  override readonly name = "FrameError";
  readonly rid: string | undefined;

  constructor(message: string, rid?: string) {
    super(message);
    this.rid = rid;
  }
}

const maxIdLength = 128;
const maxNameLength = 256;
const maxContentBlocks = 256;
const imageType = /^image\/[a-z0-9.+-]{1,64}$/;
const sha256 = /^[0-9a-f]{64}$/;

/**
 * The frame in the argument of the command. Anybody who can write to pi's stdin or guess the command's name can have
 * written it, so its whole shape is checked. Throws a {@link FrameError}.
 */
export function parseInwardFrame(text: string): InwardFrame {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FrameError("The frame is no JSON.");
  }
  if (!isObject(value)) throw new FrameError("The frame is no object.");
  const { rid, kind, session } = value;
  if (!isName(rid, maxIdLength)) throw new FrameError("The frame has no rid.");
  if (session !== undefined && !isName(session, maxIdLength)) throw new FrameError("It has a wrong session.", rid);
  const check =
    typeof kind === "string" && Object.hasOwn(frames, kind) ? frames[kind as InwardFrame["kind"]] : undefined;
  if (check === undefined) throw new FrameError("The frame is of no known kind.", rid);
  const wrong = check(value);
  if (wrong !== undefined) throw new FrameError(wrong, rid);
  return value as unknown as InwardFrame;
}

type Fields = Readonly<Record<string, unknown>>;

const maxNoticeLength = 2_000;

/** Each says what is wrong with a frame of its kind. */
const frames: Readonly<Record<InwardFrame["kind"], (frame: Fields) => string | undefined>> = {
  hold: ({ pushes, handOver }) => {
    if (!Array.isArray(pushes)) return "A hold frame needs pushes.";
    return handOver === undefined || handOver === "now" || handOver === "later"
      ? undefined
      : "It has a wrong handOver.";
  },
  release: ({ deliveryIds }) =>
    Array.isArray(deliveryIds) && deliveryIds.every(isDeliveryId) ? undefined : "A release frame needs deliveryIds.",
  beforePrompt: () => undefined,
  carry: ({ deliveryId }) =>
    deliveryId === undefined || isDeliveryId(deliveryId) ? undefined : "A carry frame has a wrong deliveryId.",
  drained: () => undefined,
  context: ({ context }) => whatIsWrongWithContext(context),
  watch: ({ provider, bodyPrefix, maxBodyBytes }) => {
    if (!providerLevels.some((level) => level === provider)) return "A watch frame needs a level.";
    if (typeof bodyPrefix !== "string" || !isAbsolute(bodyPrefix) || bodyPrefix.includes("\0"))
      return "A watch frame needs an absolute bodyPrefix.";
    return Number.isSafeInteger(maxBodyBytes) && (maxBodyBytes as number) >= 0
      ? undefined
      : "A watch frame needs its maxBodyBytes.";
  },
  entries: ({ since }) =>
    since === undefined || isName(since, maxIdLength) ? undefined : "An entries frame has a wrong since.",
  dialog: ({ requestId, method, title, reason }) =>
    typeof requestId === "string" &&
    typeof method === "string" &&
    typeof title === "string" &&
    reason === "no_responder"
      ? undefined
      : "A dialog frame needs requestId, method, title and reason.",
  notify: ({ text }) =>
    typeof text === "string" && text.length <= maxNoticeLength ? undefined : "A notify frame needs its text.",
  configure: ({ parts, isForNext }) => {
    if (isForNext !== undefined && typeof isForNext !== "boolean") return "A configure frame has a wrong isForNext.";
    return parts === null ? undefined : whatIsWrongWithParts(parts);
  },
  ask: ({ about }) => (isName(about, maxNameLength) ? undefined : "An ask frame does not say about what."),
  ping: () => undefined,
  file: ({ path, bytes, sha256: hash }) => {
    if (typeof path !== "string" || path === "" || path.includes("\0")) return "A file frame needs a path.";
    if (typeof bytes !== "number" || !Number.isSafeInteger(bytes) || bytes < 0) return "A file frame needs its bytes.";
    return typeof hash === "string" && sha256.test(hash) ? undefined : "A file frame needs its sha256.";
  },
};

const deliverAs: ReadonlySet<unknown> = new Set<HeldPush["deliverAs"]>(["steer", "followUp", "nextTurn"]);
const onAbort: ReadonlySet<unknown> = new Set<HeldPush["onAbort"]>(["park", "drop"]);

/** Why a push cannot be taken. */
export function whatIsWrongWith(push: unknown): string | undefined {
  if (!isObject(push)) return "A push is no object.";
  if (!isDeliveryId(push["deliveryId"])) return "A push has no deliveryId.";
  const wrong = (field: string): string => `The push ${String(push["deliveryId"])} has a wrong ${field}.`;
  if (!isName(push["customType"], maxNameLength) || push["customType"] === CARRIER_TYPE) return wrong("customType");
  if (!isContent(push["content"])) return wrong("content");
  if (typeof push["display"] !== "boolean") return wrong("display");
  if (push["details"] !== undefined && !isObject(push["details"])) return wrong("details");
  if (!deliverAs.has(push["deliverAs"])) return wrong("deliverAs");
  if (typeof push["triggerTurn"] !== "boolean") return wrong("triggerTurn");
  if (push["parked"] !== undefined && typeof push["parked"] !== "boolean") return wrong("parked");
  return onAbort.has(push["onAbort"]) ? undefined : wrong("onAbort");
}

function isContent(content: unknown): content is Content {
  if (typeof content === "string") return content !== "";
  return Array.isArray(content) && content.length > 0 && content.length <= maxContentBlocks && content.every(isBlock);
}

function isBlock(block: unknown): boolean {
  if (!isObject(block)) return false;
  const { type, text, data, mimeType } = block;
  if (type === "text") return typeof text === "string" && text !== "";
  return (
    type === "image" &&
    typeof data === "string" &&
    data !== "" &&
    typeof mimeType === "string" &&
    imageType.test(mimeType)
  );
}

function isName(value: unknown, maxLength: number): value is string {
  return typeof value === "string" && value !== "" && value.length <= maxLength;
}
