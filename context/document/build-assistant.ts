import type { Meta } from "../../protocol/link-context.ts";
import type { ContextCall, ContextItem, ContextPart, ContextTarget } from "./document.ts";
import { isModel } from "./ids.ts";
import { decodedBytes } from "./read-parts.ts";
import { isSoundBlock } from "./sound-block.ts";

/**
 * Builds an assistant's content for pi: the item's own blocks if they are valid and for the target, otherwise blocks
 * made from the parts.
 */
export function assistantContent(item: ContextItem, target: ContextTarget): readonly Meta[] {
  const isOfTarget = isModel(item.model, target);
  const blocks = isOfTarget ? ownBlocks(item) : undefined;
  if (blocks !== undefined) return blocks;
  const parts = item.content.flatMap((part) => partBlock(part, isOfTarget));
  const calls = (item.toolCalls ?? []).map(callBlock);
  return [...parts, ...calls];
}

function callBlock({ id, name, arguments: args }: ContextCall): Meta {
  return { type: "toolCall", id, name, arguments: args };
}

function partBlock(part: ContextPart, isOfTarget: boolean): readonly Meta[] {
  if (part.type === "text") return part.text === "" ? [] : [{ type: "text", text: part.text }];
  if (part.type === "image") return [{ type: "text", text: `[${part.mimeType} of ${decodedBytes(part.data)} bytes]` }];
  if (!isOfTarget) return [];
  const { text, signature, redacted } = part;
  return [
    {
      type: "thinking",
      thinking: text,
      ...(signature === undefined ? {} : { thinkingSignature: signature }),
      ...(redacted === undefined ? {} : { redacted }),
    },
  ];
}

/**
 * Returns the item's own blocks with the current names of the calls; `undefined` if there are none, if one is not valid
 * for pi, or if their calls differ from the item's.
 */
function ownBlocks(item: ContextItem): readonly Meta[] | undefined {
  if (item.blocks === undefined || item.blocks.length === 0 || !item.blocks.every(isSoundBlock)) return undefined;
  const calls = item.toolCalls ?? [];
  let next = 0;
  const blocks = item.blocks.map((block) => {
    if (block["type"] !== "toolCall") return block;
    const call = calls[next++];
    return call === undefined ? block : { ...block, id: call.id, name: call.name };
  });
  return next === calls.length ? blocks : undefined;
}
