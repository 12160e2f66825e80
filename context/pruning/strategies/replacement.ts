import { isRecord } from "../../../protocol/objects.ts";
import { fromBlocks } from "../../parts/recall/content.ts";
import { placeholderOf, sizeOf } from "../../parts/recall/placeholder.ts";
import { cutText } from "../../parts/tool-results/cut.ts";
import type { AssistantMessage, ResultMessage } from "./calls.ts";
import type { ArgumentsRemoval, OutputRemoval, Removal } from "./removal.ts";

/** Argument texts up to this length stay. UTF-16 units. */
export const maxArgument = 200;
/** Deeper argument values stay. */
const maxDepth = 32;

/** The message after the removal: a pure function, so that it is the same in each request. */
export function replacedBy(removal: Removal, recallId: string): AssistantMessage | ResultMessage {
  return removal.kind === "output"
    ? { ...removal.target.message, content: outputFor(removal, recallId) }
    : { ...removal.target.message, content: callsFor(removal, recallId) };
}

function outputFor({ target, call, why, keeps }: OutputRemoval, recallId: string): ResultMessage["content"] {
  const { toolName: tool, content, isError } = target.message;
  const { text, images } = fromBlocks(content);
  if (keeps !== undefined) {
    const cut = cutText({ text }, keeps, recallId);
    return cut === undefined ? content : [{ type: "text", text: cut }, ...images];
  }
  const args = call.block.arguments;
  const placeholder = placeholderOf({
    tool,
    args,
    text,
    images: images.length,
    isError,
    why: why ?? "pruned",
    recallId,
  });
  return [{ type: "text", text: placeholder }];
}

function callsFor({ target, calls }: ArgumentsRemoval, recallId: string): AssistantMessage["content"] {
  return target.message.content.map((block) => {
    const why = block.type === "toolCall" ? calls.get(block) : undefined;
    if (block.type !== "toolCall" || why === undefined) return block;
    return { ...block, arguments: shortened(block.arguments, { name: "", why, recallId }, 0) };
  });
}

interface Naming {
  readonly name: string;
  readonly why: string;
  readonly recallId: string;
}

/** The value with its long texts replaced by marks. */
function shortened<T>(value: T, naming: Naming, depth: number): T {
  if (typeof value === "string") return (value.length <= maxArgument ? value : markOf(value, naming)) as T;
  if (depth >= maxDepth) return value;
  if (Array.isArray(value)) return value.map((one) => shortened(one, naming, depth + 1)) as T;
  if (!isRecord(value)) return value;
  const made = Object.entries(value).map(([name, one]) => [name, shortened(one, { ...naming, name }, depth + 1)]);
  return Object.fromEntries(made) as T;
}

function markOf(text: string, { name, why, recallId }: Naming): string {
  return `[${name === "" ? "" : `${name.slice(0, 64).toWellFormed()}: `}${sizeOf(text)} pruned, ${why}; recall ${recallId}]`;
}

/** Whether arguments contain a removable text. */
export function hasLongText(value: unknown, depth = 0): boolean {
  if (typeof value === "string") return value.length > maxArgument;
  if (depth >= maxDepth) return false;
  if (Array.isArray(value)) return value.some((one) => hasLongText(one, depth + 1));
  return isRecord(value) && Object.values(value).some((one) => hasLongText(one, depth + 1));
}
