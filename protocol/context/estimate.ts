import type { BuiltMessage } from "./built.ts";
import type { ContextItem, ContextPart, Meta } from "./document.ts";
import { estimateJson, estimateText } from "./estimate-text.ts";
import { nativeEventOf } from "./native-event.ts";

export { estimateText } from "./estimate-text.ts";

// Estimates rather above what services count than below it: a budget must hold.

/** Tokens of what stands around each message and each call. */
const aroundMessage = 6;
const aroundCall = 8;

/** Tokens of an image, whatever its size: about the most that services ask for one of their usual limit. */
const imageTokens = 1_600;

/** Tokens of what pi writes around the text of a compaction, a branch or a command. */
const aroundNative = 40;

/** Tokens of the item as a message. Never less than `estimateMessage` of what is built of it. */
export function estimateTokens(item: ContextItem): number {
  let tokens = aroundMessage;
  for (const part of item.content) tokens += estimatePart(part);
  for (const call of item.toolCalls ?? []) {
    tokens += aroundCall + estimateText(call.id) + estimateText(call.name) + estimateJson(call.arguments);
  }
  if (item.role === "toolResult") tokens += estimateText(item.toolCallId ?? "") + estimateText(item.toolName ?? "");
  if (item.role === "event") tokens += aroundEvent(item);
  // Which of the two is sent depends on the model.
  if (item.role === "assistant" && item.blocks !== undefined) {
    tokens = Math.max(tokens, aroundMessage + estimateBlocks(item.blocks));
  }
  return tokens;
}

/** Tokens of a message as pi sends it. */
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

/** Tokens of the same items as one text with role tags, as a host without roles would give them. */
export function flattenedTokens(items: readonly ContextItem[]): number {
  let tokens = aroundMessage;
  for (const item of items) {
    tokens += estimateText(`[${item.role === "event" ? (item.eventType ?? "event") : item.role}] `) + 1;
    for (const part of item.content) tokens += estimatePart(part);
    for (const call of item.toolCalls ?? []) {
      tokens += aroundTag + estimateText(call.name) + estimateJson(call.arguments);
    }
    if (item.role === "toolResult") tokens += estimateText(item.toolName ?? "") + 1;
  }
  return tokens;
}

/** Tokens of the tag and the line of a call in a flattened conversation. */
const aroundTag = 7;

function aroundEvent(item: ContextItem): number {
  const native = nativeEventOf(item);
  // What is no native event gets a first line, in which line breaks become spaces.
  if (native === undefined) return 4 + 2 * estimateText(item.eventType ?? "");
  if (native.type !== "bashExecution") return aroundNative;
  return aroundNative + estimateText(native.command) + estimateText(native.fullOutputPath ?? "");
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

/** A signature stands for reasoning that is not shown, or for what is shown already. */
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
