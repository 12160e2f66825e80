import { isAbsolute } from "node:path";
import type { Content } from "../../protocol/content.ts";
import type { DialogMethod } from "../../protocol/dialog.ts";
import { CARRIER_TYPE } from "../../protocol/link.ts";
import type { HeldPush, InwardFrame } from "../../protocol/link-inward.ts";
import { isRecord } from "../../protocol/objects.ts";
import { providerLevels } from "../../protocol/provider-level.ts";
import { isDeliveryId } from "../delivery/marker.ts";
import { contextError } from "./context-frame.ts";
import { partsError } from "./parts-config.ts";

/** An invalid frame. `rid` is set if a reply is possible. */
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
 * Parses and validates a frame from the command's argument, which any process that can write to pi's stdin can forge.
 * Throws a {@link FrameError}.
 */
export function parseInwardFrame(text: string): InwardFrame {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new FrameError("The frame is not valid JSON.");
  }
  if (!isRecord(value)) throw new FrameError("The frame is not an object.");
  const { rid, kind, session } = value;
  if (!isName(rid, maxIdLength)) throw new FrameError("The frame has no rid.");
  if (session !== undefined && !isName(session, maxIdLength))
    throw new FrameError("The frame has an invalid session.", rid);
  const check =
    typeof kind === "string" && Object.hasOwn(frames, kind) ? frames[kind as InwardFrame["kind"]] : undefined;
  if (check === undefined) throw new FrameError("The frame's kind is unknown.", rid);
  const wrong = check(value);
  if (wrong !== undefined) throw new FrameError(wrong, rid);
  return value as unknown as InwardFrame;
}

type Fields = Readonly<Record<string, unknown>>;

const maxNoticeLength = 2_000;
const dialogMethods: ReadonlySet<unknown> = new Set<DialogMethod>(["select", "confirm", "input", "editor"]);

/** Validators by frame kind; each returns the error. */
const frames: Readonly<Record<InwardFrame["kind"], (frame: Fields) => string | undefined>> = {
  hold: ({ pushes, handOver }) => {
    if (!Array.isArray(pushes)) return "A hold frame needs pushes.";
    return handOver === undefined || handOver === "now" || handOver === "later"
      ? undefined
      : "The hold frame has an invalid handOver.";
  },
  release: ({ deliveryIds }) =>
    Array.isArray(deliveryIds) && deliveryIds.every(isDeliveryId) ? undefined : "A release frame needs deliveryIds.",
  beforePrompt: () => undefined,
  carry: ({ deliveryId }) =>
    deliveryId === undefined || isDeliveryId(deliveryId) ? undefined : "The carry frame has an invalid deliveryId.",
  drained: () => undefined,
  context: ({ context }) => contextError(context),
  watch: ({ provider, bodyPrefix, maxBodyBytes, holdEdits, formerText }) => {
    if (holdEdits !== undefined && typeof holdEdits !== "boolean") return "The watch frame has an invalid holdEdits.";
    if (formerText !== undefined && typeof formerText !== "boolean")
      return "The watch frame has an invalid formerText.";
    if (!providerLevels.some((level) => level === provider)) return "A watch frame needs a level.";
    if (typeof bodyPrefix !== "string" || !isAbsolute(bodyPrefix) || bodyPrefix.includes("\0"))
      return "A watch frame needs an absolute bodyPrefix.";
    return Number.isSafeInteger(maxBodyBytes) && (maxBodyBytes as number) >= 0
      ? undefined
      : "A watch frame needs its maxBodyBytes.";
  },
  entries: ({ since }) =>
    since === undefined || isName(since, maxIdLength) ? undefined : "The entries frame has an invalid since.",
  dialog: ({ requestId, method, title, reason }) =>
    typeof requestId === "string" && dialogMethods.has(method) && typeof title === "string" && reason === "no_responder"
      ? undefined
      : "A dialog frame needs requestId, method, title and reason.",
  notify: ({ text }) =>
    typeof text === "string" && text.length <= maxNoticeLength ? undefined : "A notify frame needs its text.",
  configure: ({ parts, isForNext }) => {
    if (isForNext !== undefined && typeof isForNext !== "boolean")
      return "The configure frame has an invalid isForNext.";
    return parts === null ? undefined : partsError(parts);
  },
  ask: ({ about }) => (isName(about, maxNameLength) ? undefined : "The ask frame has no about."),
  ping: () => undefined,
  file: ({ path, bytes, sha256: hash }) => {
    if (typeof path !== "string" || path === "" || path.includes("\0")) return "A file frame needs a path.";
    if (typeof bytes !== "number" || !Number.isSafeInteger(bytes) || bytes < 0) return "A file frame needs its bytes.";
    return typeof hash === "string" && sha256.test(hash) ? undefined : "A file frame needs its sha256.";
  },
};

const deliverAs: ReadonlySet<unknown> = new Set<HeldPush["deliverAs"]>(["steer", "followUp", "nextTurn"]);
const onAbort: ReadonlySet<unknown> = new Set<HeldPush["onAbort"]>(["park", "drop"]);

/** Returns why a push is invalid. */
export function pushError(push: unknown): string | undefined {
  if (!isRecord(push)) return "The push is not an object.";
  if (!isDeliveryId(push["deliveryId"])) return "The push has no deliveryId.";
  const wrong = (field: string): string => `The push ${String(push["deliveryId"])} has an invalid ${field}.`;
  if (!isName(push["customType"], maxNameLength) || push["customType"] === CARRIER_TYPE) return wrong("customType");
  if (!isContent(push["content"])) return wrong("content");
  if (typeof push["display"] !== "boolean") return wrong("display");
  if (push["details"] !== undefined && !isRecord(push["details"])) return wrong("details");
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
  if (!isRecord(block)) return false;
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
