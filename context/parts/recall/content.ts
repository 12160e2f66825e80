import type { AgentToolResult } from "@earendil-works/pi-coding-agent";
import type { SessionEntry } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";

/** The original of removed content. */
export interface Recalled {
  readonly text: string;
  readonly images: readonly ImageBlock[];
}

export type ImageBlock = Extract<AgentToolResult<unknown>["content"][number], { type: "image" }>;

/** Returns the original text and images of an entry. `undefined`: the model has seen none. */
export function contentOf(entry: SessionEntry | undefined): Recalled | undefined {
  if (entry?.type === "custom_message") return fromBlocks(entry.content);
  if (entry?.type !== "message") return undefined;
  const { message } = entry;
  if (message.role === "bashExecution") return { text: message.output, images: [] };
  if (message.role === "user" || message.role === "toolResult") return fromBlocks(message.content);
  return undefined;
}

/** Returns the texts of a content, joined by line breaks as for services, and its images. */
export function fromBlocks(content: unknown): Recalled {
  if (typeof content === "string") return { text: content, images: [] };
  const blocks: readonly unknown[] = Array.isArray(content) ? content : [];
  const texts: string[] = [];
  const images: ImageBlock[] = [];
  for (const block of blocks) {
    if (!isRecord(block)) continue;
    const { type, text, data, mimeType } = block;
    if (type === "text" && typeof text === "string") texts.push(text);
    if (type === "image" && typeof data === "string" && typeof mimeType === "string")
      images.push({ type, data, mimeType });
  }
  return { text: texts.join("\n"), images };
}
