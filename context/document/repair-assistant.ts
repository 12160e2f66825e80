import type { Meta } from "../../protocol/link-context.ts";
import type { ContextCall, ContextItem, ContextPart } from "./document.ts";
import { acceptedId, acceptedToolName, isAcceptedId, isAcceptedToolName, isOwnId, isOwnToolName } from "./ids.ts";
import { ownBlocks, ownParts } from "./own-message.ts";
import { type ContentRules, isBlank, soundParts, wellFormedJson } from "./repair-content.ts";
import { isSoundBlock } from "./sound-block.ts";

/** A call with its original id and name, if they were changed. */
export interface SoundCall extends ContextCall {
  readonly originalId: string;
  readonly originalName: string;
}

/** An assistant's message that is valid for the target. */
export interface SoundAssistant {
  readonly content: readonly ContextPart[];
  readonly calls: readonly SoundCall[];
  /** pi's own blocks; absent if the message is not the target's own or its blocks are invalid. */
  readonly blocks?: readonly Meta[];
}

/** Stop reasons of an answer that was cut off. */
const interruptions: ReadonlySet<string> = new Set(["error", "aborted", "length"]);

/** Keeps the content of a copied message, without data that only the original may have. */
export function soundCopy(item: ContextItem, rules: ContentRules): SoundAssistant {
  const isSound = item.blocks?.every(isSoundBlock) === true && item.blocks.length > 0;
  return soundAssistant(isSound ? fromBlocks(item, item.blocks ?? []) : item, { ...rules, isOwn: false });
}

export function soundAssistant(item: ContextItem, rules: ContentRules): SoundAssistant {
  const blocks = rules.isOwn ? keptBlocks(item.blocks, rules) : undefined;
  const given = blocks === undefined ? item : fromBlocks(item, blocks);
  const parts = soundParts(given, rules);
  const content = rules.isOwn ? ownParts(parts, (given.toolCalls ?? []).length > 0, rules) : parts;
  const calls = (given.toolCalls ?? []).map((call) => soundCall(call, rules));
  if (calls.length > 0 && interruptions.has(item.stopReason ?? "")) {
    rules.note("interrupted_assistant", `${rules.name} was cut off with calls in it.`);
  }
  return { content, calls, ...(blocks === undefined ? {} : { blocks }) };
}

function soundCall(call: ContextCall, rules: ContentRules): SoundCall {
  const { isOwn, target, note } = rules;
  const { id: originalId, name: originalName } = call;
  const isGoodId = isOwn ? isOwnId(originalId, target) : isAcceptedId(originalId, target);
  const isGoodName = isOwn ? isOwnToolName(originalName, target) : isAcceptedToolName(originalName, target);
  if (!isGoodId) note("bad_call_id", `${rules.name} has a call with an id that some services refuse.`);
  if (!isGoodName) note("bad_tool_name", `${rules.name} has a call of a tool with a name that some services refuse.`);
  return {
    id: isGoodId ? originalId : acceptedId(originalId),
    name: isGoodName ? originalName : acceptedToolName(originalName, target),
    arguments: wellFormedJson(call.arguments, rules),
    originalId,
    originalName,
  };
}

/** Removes blank blocks; `undefined` if none remain or one is invalid. */
function keptBlocks(blocks: readonly Meta[] | undefined, rules: ContentRules): readonly Meta[] | undefined {
  if (blocks === undefined || !blocks.every(isSoundBlock)) return undefined;
  const kept = blocks.filter((block) => block["type"] !== "text" || !isBlank(String(block["text"])));
  if (kept.length === 0) return undefined;
  // Every service refuses a lone surrogate, and pi does not remove those in arguments.
  const whole = kept.map((block) => wellFormedJson(block, rules));
  return ownBlocks(whole, rules);
}

/** Derives the format's fields from the blocks, which override them. */
function fromBlocks(item: ContextItem, blocks: readonly Meta[]): ContextItem {
  const content: ContextPart[] = [];
  const toolCalls: ContextCall[] = [];
  for (const block of blocks) {
    if (block["type"] === "text") content.push({ type: "text", text: String(block["text"]) });
    else if (block["type"] === "thinking") content.push(reasoningOf(block));
    else toolCalls.push(callOf(block));
  }
  return { ...item, content, toolCalls };
}

function reasoningOf({ thinking, thinkingSignature, redacted }: Meta): ContextPart {
  return {
    type: "reasoning",
    text: String(thinking),
    ...(typeof thinkingSignature === "string" ? { signature: thinkingSignature } : {}),
    ...(redacted === true ? { redacted } : {}),
  };
}

function callOf({ id, name, arguments: given }: Meta): ContextCall {
  return { id: String(id), name: String(name), arguments: given as ContextCall["arguments"] };
}

/** Renames the calls in the blocks, in the same order. */
export function renamedBlocks(blocks: readonly Meta[], calls: readonly ContextCall[]): readonly Meta[] {
  let next = 0;
  return blocks.map((block) => {
    if (block["type"] !== "toolCall") return block;
    const call = calls[next++];
    if (call === undefined || (call.id === block["id"] && call.name === block["name"])) return block;
    return { ...block, id: call.id, name: call.name };
  });
}
