import type { Meta } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { ContextItem, ContextPart, ContextTarget } from "./document.ts";
import { isAcceptedName, speaksResponses } from "./ids.ts";
import type { ContentRules } from "./repair-content.ts";

// Checks content that claims to be the target's own. pi sends it back unchanged. For OpenAI Responses pi parses each
// signature as the JSON of an item first, and fails if it is not.

/** Removes signatures from an assistant's parts that its model cannot have issued. */
export function ownParts(
  parts: readonly ContextPart[],
  hasCalls: boolean,
  rules: ContentRules,
): readonly ContextPart[] {
  const kept = parts.filter((part) => part.type !== "reasoning" || hasData(part.redacted, part.signature, rules));
  const { target } = rules;
  if (!speaksResponses(target) && !wantsEnd(target)) return kept.length === parts.length ? parts : kept;
  return kept.map((part, index) => {
    if (part.type !== "reasoning" || part.signature === undefined) return part;
    const leads = hasCalls || kept.slice(index + 1).some(({ type }) => type !== "reasoning");
    if (isGood(leads, part.redacted, part.signature, target)) return part;
    const { signature: _, ...rest } = part;
    noteUnsigned(rules);
    return rest;
  });
}

/** Removes such signatures from its blocks. */
export function ownBlocks(blocks: readonly Meta[], rules: ContentRules): readonly Meta[] {
  const kept = blocks.filter(
    ({ type, redacted, thinkingSignature }) => type !== "thinking" || hasData(redacted, thinkingSignature, rules),
  );
  const { target } = rules;
  if (!speaksResponses(target) && !wantsEnd(target)) return kept;
  return kept.map((block, index) => {
    const { type, textSignature, thinkingSignature } = block;
    if (
      type === "text" &&
      speaksResponses(target) &&
      typeof textSignature === "string" &&
      !isMessageName(textSignature)
    ) {
      const { textSignature: _, ...rest } = block;
      return rest;
    }
    if (type !== "thinking" || typeof thinkingSignature !== "string") return block;
    const leads = kept.slice(index + 1).some((next) => next["type"] !== "thinking");
    if (isGood(leads, block["redacted"], thinkingSignature, target)) return block;
    const { thinkingSignature: _, ...rest } = block;
    noteUnsigned(rules);
    return rest;
  });
}

/**
 * Item ids of reasoning and texts of OpenAI Responses in the target's messages. Each id is unique in a conversation: a
 * message that repeats one is a copy or a forgery, and loses its signed content. Call ids are handled where calls are
 * named.
 */
export class OwnItems {
  readonly #hasItems: boolean;
  readonly #seen = new Set<string>();

  constructor(target: ContextTarget) {
    this.#hasItems = speaksResponses(target);
  }

  /** Whether all items of a message are new; records them. */
  take({ content, blocks = [] }: ContextItem): boolean {
    if (!this.#hasItems) return true;
    const inBlocks = idsOf(blocks.map(idOfBlock));
    const inContent = idsOf(content.map(idOfPart));
    // Both can contain the same id.
    const all = new Set([...inBlocks, ...inContent]);
    const isNew =
      new Set(inBlocks).size === inBlocks.length &&
      new Set(inContent).size === inContent.length &&
      ![...all].some((id) => this.#seen.has(id));
    if (isNew) for (const id of all) this.#seen.add(id);
    return isNew;
  }
}

function idsOf(ids: readonly unknown[]): readonly string[] {
  return ids.filter((id) => typeof id === "string" && id !== "") as readonly string[];
}

function idOfBlock({ type, textSignature, thinkingSignature }: Meta): unknown {
  if (type === "text") return typeof textSignature === "string" ? messageId(textSignature) : undefined;
  return type === "thinking" ? reasoningId(thinkingSignature) : undefined;
}

function idOfPart(part: ContextPart): unknown {
  return part.type === "reasoning" ? reasoningId(part.signature) : undefined;
}

function reasoningId(signature: unknown): unknown {
  const item = typeof signature === "string" ? parsed(signature) : undefined;
  return isRecord(item) ? item["id"] : undefined;
}

/** Anthropic refuses a message that ends with reasoning. pi sends reasoning without a signature as text. */
function wantsEnd({ api }: ContextTarget): boolean {
  return api === "anthropic-messages";
}

function isGood(leads: boolean, redacted: unknown, signature: string, target: ContextTarget): boolean {
  return speaksResponses(target) ? leads && isReasoningItem(signature) : leads || redacted === true || signature === "";
}

/** Hidden reasoning has only the signature. */
function hasData(redacted: unknown, signature: unknown, rules: ContentRules): boolean {
  if (redacted !== true || (typeof signature === "string" && signature !== "")) return true;
  noteUnsigned(rules);
  return false;
}

function noteUnsigned({ note, name }: ContentRules): void {
  note("foreign_reasoning", `${name} has reasoning that the model cannot have given, or that led to nothing.`);
}

function isReasoningItem(signature: string): boolean {
  const item = parsed(signature);
  if (!isRecord(item) || item["type"] !== "reasoning" || !Array.isArray(item["summary"])) return false;
  return typeof item["id"] === "string" && isAcceptedName(item["id"]) && item["summary"].every(isSummaryText);
}

function isSummaryText(part: unknown): boolean {
  return isRecord(part) && part["type"] === "summary_text" && typeof part["text"] === "string";
}

/** pi stores the id of the message's item there, plain or in JSON, and shortens long ones. */
function isMessageName(signature: string): boolean {
  const id = messageId(signature);
  // pi names messages without an id `msg_pi_…`.
  return typeof id === "string" && /^msg(?!_pi_)[A-Za-z0-9_-]*$/.test(id);
}

function messageId(signature: string): unknown {
  const item = signature.startsWith("{") ? parsed(signature) : { v: 1, id: signature };
  return isRecord(item) && item["v"] === 1 ? item["id"] : undefined;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
