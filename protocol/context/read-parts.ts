import type { ContextPart, ImagePart } from "./document.ts";
import { contextInvalid, contextTooLarge } from "./faults.ts";
import type { ContextLimits } from "./limits.ts";
import { isObject, type Loose, utf8Bytes } from "./measure.ts";
import type { Path, ShapeFindings } from "./shape.ts";

/** Where something is read: for findings, for errors and for its bounds. */
export interface Place {
  readonly path: Path;
  /** As a sentence begins: `Node "n3"`. */
  readonly name: string;
  readonly nodeId: string | undefined;
  readonly limits: ContextLimits;
  readonly findings: ShapeFindings;
}

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
    place.findings.add(place.path, "a text or an array of blocks", value);
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
    const part = readBlock(block, index, place);
    if (part !== undefined) parts.push(part);
  }
  return { parts, isMended };
}

function textParts(text: string, place: Place): readonly ContextPart[] {
  if (text === "") return [];
  checkText(text, place);
  return [{ type: "text", text }];
}

function readBlock(block: unknown, index: number, place: Place): ContextPart | undefined {
  const path = (...steps: Path): Path => [...place.path, index, ...steps];
  if (!isObject(block)) {
    place.findings.add(path(), "a block", block);
    return undefined;
  }
  const { type } = block;
  if (type === "image") return readImage(block, place);
  if (type !== "text" && type !== "reasoning") {
    place.findings.add(path("type"), "text, image, reasoning", type);
    return undefined;
  }
  const { text, signature, redacted } = block;
  if (typeof text !== "string") {
    place.findings.add(path("text"), "a text", text);
    return undefined;
  }
  checkText(text, place);
  if (type === "text") return { type, text };
  const hasSignature = isOptional(signature, "string");
  if (!hasSignature) place.findings.add(path("signature"), "a text", signature);
  const isRedacted = isOptional(redacted, "boolean");
  if (!isRedacted) place.findings.add(path("redacted"), "true or false", redacted);
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

function checkText(text: string, { name, nodeId, limits }: Place): void {
  const limit = limits.maxBlockBytes;
  // No character takes more than 3 bytes for each unit of a string's length.
  if (text.length * 3 <= limit) return;
  const count = utf8Bytes(text);
  if (count <= limit) return;
  const what = `A text of ${inSentence(name)}`;
  throw contextTooLarge({ what, unit: "bytes", count, limit, key: "context.maxBlockBytes", nodeId });
}

function readImage({ data, mimeType }: Loose, place: Place): ImagePart {
  const { name, nodeId, limits } = place;
  if (typeof data !== "string" || typeof mimeType !== "string" || !imageType.test(mimeType) || !isBase64(data)) {
    throw contextInvalid("bad_image", `${name} has an image that is not base64 with a type such as image/png.`, nodeId);
  }
  const count = decodedBytes(data);
  const limit = limits.maxImageBytes;
  if (count > limit) {
    const what = `An image of ${inSentence(name)}`;
    throw contextTooLarge({ what, unit: "bytes", count, limit, key: "context.maxBlockBytes", nodeId });
  }
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

/** A place's name in the middle of a sentence. */
export function inSentence(name: string): string {
  return `${name.charAt(0).toLowerCase()}${name.slice(1)}`;
}
