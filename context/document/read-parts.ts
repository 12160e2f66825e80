import type { ImagePart } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { ContextPart } from "./document.ts";
import { contextInvalid } from "./faults.ts";
import { type Loose, utf8Bytes } from "./measure.ts";
import type { Place } from "./place.ts";

export interface ReadParts {
  readonly parts: readonly ContextPart[];
  /** Whether a text was found instead of a block, or `null` instead of content. */
  readonly isRepaired: boolean;
}

/** Reads content: a text, or blocks. Absent content is empty; so is `null`, which counts as repaired. */
export function readParts(value: unknown, place: Place): ReadParts {
  if (value === undefined) return { parts: [], isRepaired: false };
  if (value === null) return { parts: [], isRepaired: true };
  if (typeof value === "string") return { parts: textParts(value, place), isRepaired: false };
  if (!Array.isArray(value)) {
    place.misfit("a text or an array of blocks", value);
    return { parts: [], isRepaired: false };
  }
  const parts: ContextPart[] = [];
  let isRepaired = false;
  for (let index = 0; index < value.length; index += 1) {
    const block: unknown = value[index];
    if (block === null || typeof block === "string") {
      isRepaired = true;
      if (block !== null) for (const part of textParts(block, place)) parts.push(part);
      continue;
    }
    const part = readBlock(block, place.at(index));
    if (part !== undefined) parts.push(part);
  }
  return { parts, isRepaired };
}

function textParts(text: string, place: Place): readonly ContextPart[] {
  if (text === "") return [];
  checkText(text, place);
  return [{ type: "text", text }];
}

function readBlock(block: unknown, place: Place): ContextPart | undefined {
  if (!isRecord(block)) {
    place.misfit("a block", block);
    return undefined;
  }
  const { type } = block;
  if (type === "image") return readImage(block, place);
  if (type !== "text" && type !== "reasoning") {
    place.misfit("text, image, reasoning", type, "type");
    return undefined;
  }
  const { text, signature, redacted } = block;
  if (typeof text !== "string") {
    place.misfit("a text", text, "text");
    return undefined;
  }
  checkText(text, place);
  if (type === "text") return { type, text };
  const hasSignature = isOptional(signature, "string");
  if (!hasSignature) place.misfit("a text", signature, "signature");
  const isRedacted = isOptional(redacted, "boolean");
  if (!isRedacted) place.misfit("true or false", redacted, "redacted");
  return {
    type,
    text,
    ...(typeof signature === "string" ? { signature } : {}),
    ...(typeof redacted === "boolean" ? { redacted } : {}),
  };
}

function isOptional(value: unknown, type: "string" | "boolean"): boolean {
  return value === undefined || value === null || typeof value === type;
}

function checkText(text: string, place: Place): void {
  const limit = place.limits.maxBlockBytes;
  // A UTF-16 unit takes at most 3 bytes.
  if (text.length * 3 <= limit) return;
  const count = utf8Bytes(text);
  if (count <= limit) return;
  throw place.exceeded("A text of", { unit: "bytes", count, limit, key: "context.maxBlockBytes" });
}

function readImage({ data, mimeType }: Loose, place: Place): ImagePart {
  if (typeof data !== "string" || typeof mimeType !== "string" || !imageType.test(mimeType) || !isBase64(data)) {
    const words = `${place.name} has an image that is not base64 with a type such as image/png.`;
    throw contextInvalid("bad_image", words, place.nodeId);
  }
  const count = decodedBytes(data);
  const limit = place.limits.maxImageBytes;
  if (count > limit) throw place.exceeded("An image of", { unit: "bytes", count, limit, key: "context.maxBlockBytes" });
  return { type: "image", data, mimeType };
}

const imageType = /^image\/[A-Za-z0-9.+-]{1,64}$/;

function isBase64(data: string): boolean {
  if (data === "" || data.length % 4 !== 0) return false;
  const end = data.search(/[^A-Za-z0-9+/]/);
  if (end === -1) return true;
  const rest = data.slice(end);
  return rest === "=" || rest === "==";
}

/** Returns the decoded size of a base64 text in bytes. */
export function decodedBytes(data: string): number {
  const padding = data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0;
  return Math.max(0, Math.floor((data.length * 3) / 4) - padding);
}
