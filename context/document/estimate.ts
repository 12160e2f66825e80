import type { BuiltMessage, Meta } from "../../protocol/link-context.ts";
import type { ContextItem, ContextPart } from "./document.ts";
import { nativeEventOf } from "./native-event.ts";

// Estimates err on the high side, because a budget must not be exceeded.

/** Tokens of the framing of each message and call. */
const aroundMessage = 5;
const aroundCall = 8;

/** Tokens of an image of any size: about the maximum that services count at their usual size limit. */
const imageTokens = 1_600;

/** Tokens that pi adds around the text of a compaction, a branch or a command. */
const aroundNative = 40;

/** Estimates the tokens of an item as a message; never less than `estimateMessage` of the built message. */
export function estimateTokens(item: ContextItem): number {
  let tokens = aroundMessage;
  for (const part of item.content) tokens += estimatePart(part);
  for (const call of item.toolCalls ?? []) {
    tokens += aroundCall + estimateText(call.id) + estimateText(call.name) + estimateJson(call.arguments);
  }
  if (item.role === "toolResult") tokens += estimateText(item.toolCallId ?? "") + estimateText(item.toolName ?? "");
  if (item.role === "event") tokens += aroundEvent(item);
  // The model determines which of the two is sent.
  if (item.role === "assistant" && item.blocks !== undefined) {
    tokens = Math.max(tokens, aroundMessage + estimateBlocks(item.blocks));
  }
  return tokens;
}

/** Estimates the tokens of a message as pi sends it. */
export function estimateMessage(message: BuiltMessage): number {
  switch (message.role) {
    case "assistant":
      return aroundMessage + estimateBlocks(message.content);
    case "toolResult":
      return (
        aroundMessage +
        estimateText(message.toolCallId) +
        estimateText(message.toolName) +
        estimateContent(message.content)
      );
    case "compactionSummary":
    case "branchSummary":
      return aroundMessage + aroundNative + estimateText(message.summary);
    case "bashExecution":
      return (
        aroundMessage +
        aroundNative +
        estimateText(message.command) +
        estimateText(message.fullOutputPath ?? "") +
        estimateText(message.output)
      );
    default:
      return aroundMessage + estimateContent(message.content);
  }
}

/**
 * Estimates the tokens of the items as one text with role tags, as a host without roles would send them. `structured`:
 * the total of {@link estimateTokens}, if known, to avoid reading every text again.
 */
export function flattenedTokens(items: readonly ContextItem[], structured = sumOf(items)): number {
  let tokens = structured + aroundMessage;
  for (const item of items) {
    const { role, toolCalls = [], toolCallId = "" } = item;
    tokens += aroundTag - aroundMessage + estimateText(role === "event" ? (item.eventType ?? role) : role);
    for (const { id } of toolCalls) tokens += aroundTag - aroundCall - estimateText(id);
    if (role === "toolResult") tokens -= estimateText(toolCallId);
    if (role === "event") tokens -= aroundText(item);
  }
  return tokens;
}

/** Tokens of a tag's brackets and a line end. */
const aroundTag = 4;

function sumOf(items: readonly ContextItem[]): number {
  let tokens = 0;
  for (const item of items) tokens += estimateTokens(item);
  return tokens;
}

function aroundEvent(item: ContextItem): number {
  const native = nativeEventOf(item);
  const around = aroundText(item);
  if (native?.type !== "bashExecution") return around;
  return around + estimateText(native.command) + estimateText(native.fullOutputPath ?? "");
}

/** Other than native events, events get a first line with their name, in which line breaks become spaces. */
function aroundText(item: ContextItem): number {
  return nativeEventOf(item) === undefined ? 4 + 2 * estimateText(item.eventType ?? "") : aroundNative;
}

function estimateContent(content: string | readonly ContextPart[]): number {
  if (typeof content === "string") return estimateText(content);
  let tokens = 0;
  for (const part of content) tokens += estimatePart(part);
  return tokens;
}

function estimatePart(part: ContextPart): number {
  if (part.type === "image") return imageTokens;
  if (part.type === "text") return estimateText(part.text);
  return estimateReasoning(part.text, part.signature);
}

/** A signature represents hidden reasoning, or reasoning that is also shown. */
function estimateReasoning(text: string, signature: string | undefined): number {
  return Math.max(estimateText(text), Math.ceil((signature?.length ?? 0) / 4));
}

function estimateBlocks(blocks: readonly Meta[]): number {
  let tokens = 0;
  for (const block of blocks) {
    const { type, text, thinking, thinkingSignature, id, name, arguments: args } = block;
    if (type === "text" && typeof text === "string") tokens += estimateText(text);
    else if (type === "thinking" && typeof thinking === "string") {
      tokens += estimateReasoning(thinking, typeof thinkingSignature === "string" ? thinkingSignature : undefined);
    } else if (type === "toolCall") {
      tokens += aroundCall + estimateText(String(id)) + estimateText(String(name)) + estimateJson(args);
    } else tokens += estimateJson(block);
  }
  return tokens;
}

// The services' token tables are not available here. Rules common to all: a short word is one token, a long one
// several; a few digits form a token; a space before a word is free; a character beyond ASCII can be several tokens.

const kindNames = ["upper", "lower", "digit", "space", "line", "mark"] as const;
type Kind = (typeof kindNames)[number];

/** Tokens of the first character of a run of one kind, and of each further one. */
const costs: Readonly<Record<Kind, readonly [first: number, further: number]>> = {
  upper: [1.2, 0.5],
  lower: [1, 0.1],
  digit: [1, 0.5],
  space: [0, 0.1],
  line: [0.9, 0.1],
  mark: [0.8, 0.7],
};

/** Kinds of the ASCII characters, by code. */
export const asciiKinds = Uint8Array.from({ length: 128 }, (_, code) => kindNames.indexOf(kindOf(code)));

function kindOf(code: number): Kind {
  if (code >= 0x41 && code <= 0x5a) return "upper";
  if (code >= 0x61 && code <= 0x7a) return "lower";
  if (code >= 0x30 && code <= 0x39) return "digit";
  if (code === 0x20) return "space";
  return code >= 0x09 && code <= 0x0d ? "line" : "mark";
}

/** Tokens of a character by its kind (row of {@link kindCount}) and the kind of the previous character. */
export const asciiSteps = Float64Array.from(
  kindNames.flatMap((kind) => kindNames.map((previous) => costs[kind][continues(kind, previous) ? 1 : 0])),
);

function continues(kind: Kind, previous: Kind): boolean {
  if (kind === "space" || kind === "line") return previous === "space" || previous === "line";
  // A word may begin with a capital.
  return kind === previous || (kind === "lower" && previous === "upper");
}

export const kindCount = kindNames.length;
/** Kind of punctuation marks, and the kind assumed before a text. */
export const markKind = kindNames.indexOf("mark");

/**
 * Estimates the tokens of a text in one pass without copying. Never less than a quarter of its UTF-16 units, which is
 * pi's estimate.
 */
export function estimateText(text: string): number {
  let tokens = 0;
  let previous = markKind;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code < 128) {
      const kind = asciiKinds[code] as number;
      tokens += asciiSteps[kind * kindCount + previous] as number;
      previous = kind;
    } else {
      tokens += beyondAscii(code);
      previous = markKind;
    }
  }
  return Math.ceil(Math.max(tokens, text.length / 4));
}

/** Tokens of one UTF-16 unit. */
export function beyondAscii(code: number): number {
  // Combining marks.
  if (code >= 0x300 && code < 0x370) return 1.5;
  if (code < 0x370) return 0.7;
  if (code < 0x900) return 0.8;
  // Tibetan and Braille count by bytes.
  if (code >= 0xf00 && code < 0x1000) return 2.2;
  if (code >= 0x2800 && code < 0x2900) return 3;
  if (code < 0x2000) return 1.3;
  if (code < 0x2e80) return 1.5;
  if (code < 0xd800) return 1.3;
  return 1.6;
}

/** Estimates the tokens of a value as JSON, without serialising it and without recursion. */
function estimateJson(value: unknown): number {
  let tokens = 0;
  const open: unknown[] = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === "string") tokens += estimateQuoted(next);
    else if (Array.isArray(next)) {
      tokens += 1 + next.length * 0.6;
      for (const element of next) open.push(element);
    } else if (typeof next === "object" && next !== null) {
      tokens += 1.5;
      for (const name in next) {
        tokens += estimateQuoted(name) + 0.6;
        open.push((next as Record<string, unknown>)[name]);
      }
    } else tokens += typeof next === "number" ? estimateText(String(next)) : 1;
  }
  return Math.ceil(tokens);
}

function estimateQuoted(text: string): number {
  return estimateText(text) + 1.2 + escapes(text) * 0.6;
}

/** Number of characters that JSON escapes. */
function escapes(text: string): number {
  let count = 0;
  for (let at = 0; at < text.length; at += 1) {
    const code = text.charCodeAt(at);
    if (code === 0x22 || code === 0x5c || code === 0x0a || code === 0x09 || code === 0x0d) count += 1;
    else if (code < 0x20) count += 5;
  }
  return count;
}
