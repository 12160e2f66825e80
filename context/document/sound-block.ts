import type { Meta } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";

/** Whether pi can send a block of an assistant's content. */
export function isSoundBlock(block: Meta): boolean {
  const { type } = block;
  if (type === "text") return isText(block, "text") && mayBeText(block, "textSignature");
  if (type === "thinking") return isText(block, "thinking") && mayBeText(block, "thinkingSignature");
  if (type !== "toolCall") return false;
  return (
    isText(block, "id") && isText(block, "name") && isRecord(block["arguments"]) && mayBeText(block, "thoughtSignature")
  );
}

function isText(block: Meta, field: string): boolean {
  return typeof block[field] === "string";
}

function mayBeText(block: Meta, field: string): boolean {
  return block[field] === undefined || isText(block, field);
}
