import type { ImagePart, Meta, TextPart } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { ContextCall, ContextPart } from "./document.ts";
import type { NoteExport } from "./export-notes.ts";
import { grouped } from "./faults.ts";
import type { Loose } from "./measure.ts";
import { keptObject, MAX_BLOCK_DEPTH } from "./native-values.ts";
import { decodedBytes } from "./read-parts.ts";
import { type UnsignedCalls, unsignedBlock } from "./signed-items.ts";

/** Which content of a message to export. */
export interface ContentOptions {
  /** Default of an export: false. */
  readonly includeReasoning: boolean;
  /** If false, each image is replaced with a text of its type and size. */
  readonly includeImages: boolean;
}

/** An assistant's content in the format's fields. */
export interface AssistantContent {
  readonly content: readonly ContextPart[];
  readonly toolCalls?: readonly ContextCall[];
  /** Absent if `content` and `toolCalls` are complete: texts first, then calls, without provider data. */
  readonly blocks?: readonly Meta[];
}

const base64 = /^[A-Za-z0-9+/]+={0,2}$/;
const imageType = /^image\/[A-Za-z0-9.+-]{1,64}$/;

/** Converts pi's content of a user message, tool result or custom message: a string, or blocks. */
export function partsOf(
  content: unknown,
  { includeImages }: ContentOptions,
  note: NoteExport,
): readonly (TextPart | ImagePart)[] {
  const parts: (TextPart | ImagePart)[] = [];
  for (const block of blocksOf(content, note)) {
    const part = textOf(block) ?? imageOf(block, includeImages, note);
    if (part === undefined) note("unreadable_content");
    else parts.push(part);
  }
  return parts;
}

/** Converts an assistant's blocks. `calls` records call ids that change because their reasoning is left out. */
export function assistantContent(
  content: unknown,
  options: ContentOptions,
  note: NoteExport,
  calls?: UnsignedCalls,
): AssistantContent {
  const parts: ContextPart[] = [];
  const toolCalls: ContextCall[] = [];
  const blocks: Meta[] = [];
  let isPlain = true;
  const given = blocksOf(content, note);
  const isUnsigned = calls !== undefined && !options.includeReasoning && given.some(isSignedReasoning);
  for (const raw of given) {
    const sound = soundBlock(raw, note);
    if (sound === undefined) continue;
    const block = isUnsigned ? unsignedBlock(sound) : sound;
    if (block["type"] === "toolCall") calls?.note(sound["id"], block["id"]);
    const call = callOf(block);
    const part = textOf(block) ?? reasoningOf(block);
    if (part?.type === "reasoning" && !options.includeReasoning) {
      note("reasoning");
      continue;
    }
    if (part !== undefined) parts.push(part);
    if (call !== undefined) toolCalls.push(call);
    if (part === undefined && call === undefined) note("unreadable_content");
    else blocks.push(block);
    isPlain &&=
      call === undefined ? part?.type === "text" && toolCalls.length === 0 && isBare(block, 2) : isBare(block, 4);
  }
  return { content: parts, ...(toolCalls.length > 0 ? { toolCalls } : {}), ...(isPlain ? {} : { blocks }) };
}

function isSignedReasoning({ type, thinkingSignature }: Loose): boolean {
  return type === "thinking" && typeof thinkingSignature === "string";
}

/** Whether a block has only fields of the format. */
function isBare(block: Meta, fields: number): boolean {
  return Object.keys(block).length === fields;
}

function blocksOf(content: unknown, note: NoteExport): readonly Loose[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  if (content === null || content === undefined) return [];
  if (!Array.isArray(content)) {
    note("unreadable_content");
    return [];
  }
  return content.filter((block) => {
    if (isRecord(block)) return true;
    note("unreadable_content");
    return false;
  });
}

/** A call keeps its position even if its arguments cannot be kept. */
function soundBlock(raw: Loose, note: NoteExport): Meta | undefined {
  if (raw["type"] !== "toolCall") {
    return keptObject(raw, note, MAX_BLOCK_DEPTH);
  }
  const { arguments: given, ...others } = raw;
  const rest = keptObject(others, note, MAX_BLOCK_DEPTH);
  const sound = keptObject(given, note);
  if (sound === undefined && !isRecord(given)) note("unsound_data");
  return { ...(rest ?? { type: "toolCall", id: raw["id"], name: raw["name"] }), arguments: sound ?? {} };
}

function callOf({ type, id, name, arguments: given }: Meta): ContextCall | undefined {
  if (type !== "toolCall" || typeof id !== "string" || typeof name !== "string" || !isRecord(given)) return undefined;
  return { id, name, arguments: given };
}

function textOf({ type, text }: Loose): TextPart | undefined {
  return type === "text" && typeof text === "string" ? { type, text } : undefined;
}

function reasoningOf({ type, thinking, thinkingSignature, redacted }: Loose): ContextPart | undefined {
  if (type !== "thinking" || (typeof thinking !== "string" && typeof thinkingSignature !== "string")) return undefined;
  return {
    type: "reasoning",
    text: typeof thinking === "string" ? thinking : "",
    ...(typeof thinkingSignature === "string" ? { signature: thinkingSignature } : {}),
    ...(typeof redacted === "boolean" ? { redacted } : {}),
  };
}

function imageOf(
  { type, data, mimeType }: Loose,
  isWanted: boolean,
  note: NoteExport,
): ImagePart | TextPart | undefined {
  if (type !== "image" || typeof data !== "string" || typeof mimeType !== "string") return undefined;
  // Documents and services accept no other images.
  if (!imageType.test(mimeType) || data.length % 4 !== 0 || !base64.test(data)) return undefined;
  if (isWanted) return { type, data, mimeType };
  note("image");
  return { type: "text", text: `[Image left out: ${mimeType}, ${grouped(decodedBytes(data))} bytes]` };
}
