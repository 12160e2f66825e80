import type { ImagePart } from "../../protocol/link-context.ts";
import type { ContextPart } from "./document.ts";
import { contextInvalid } from "./faults.ts";
import { isObject, type Loose, utf8Bytes } from "./measure.ts";
import type { Place } from "./place.ts";

export interface ReadParts {
  readonly parts: readonly ContextPart[];
  /** Whether a text stood where a block is required, or `null` where content is. */
  readonly isMended: boolean;
}

/** Reads content: a text, or blocks. What is absent is empty; `null` is too, and counts as mended. */
export function readParts(value: unknown, place: Place): ReadParts {
  if (value === undefined) return { parts: [], isMended: false };
  if (value === null) return { parts: [], isMended: true };
  if (typeof value === "string") return { parts: textParts(value, place), isMended: false };
  if (!Array.isArray(value)) {
    place.misfit("a text or an array of blocks", value);
    return { parts: [], isMended: false };
  }
  const parts: ContextPart[] = [];
  let isMended = false;
  for (let index = 0; index < value.length; index += 1) {
    const block: unknown = value[index];
    if (block === null || typeof block === "string") {
      isMended = true;
      if (block !== null) for (const part of textParts(block, place)) parts.push(part);
      continue;
    }
    const part = readBlock(block, place.at(index));
    if (part !== undefined) parts.push(part);
  }
  return { parts, isMended };
}

function textParts(text: string, place: Place): readonly ContextPart[] {
  if (text === "") return [];
  checkText(text, place);
  return [{ type: "text", text }];
}

function readBlock(block: unknown, place: Place): ContextPart | undefined {
  if (!isObject(block)) {
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
  // No character takes more than 3 bytes for each unit of a string's length.
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

/** Bytes of what a text in base64 stands for. */
export function decodedBytes(data: string): number {
  const padding = data.endsWith("==") ? 2 : data.endsWith("=") ? 1 : 0;
  return Math.max(0, Math.floor((data.length * 3) / 4) - padding);
}
