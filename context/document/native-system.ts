import { isRecord } from "../../protocol/objects.ts";
import type { ContextItem } from "./document.ts";
import type { Loose } from "./measure.ts";
import type { SessionEntry } from "./session-tree.ts";

/** Text of a system message for a model that does not support changes. */
export function systemText({ content, sections }: Loose): string {
  const named = isRecord(sections) ? Object.values(sections) : [];
  return [...contentTexts(content), ...named].filter((text) => typeof text === "string" && text !== "").join("\n\n");
}

/** Folds the system messages of a path into one item: later ones add text and replace sections. */
export function foldSystem(path: readonly SessionEntry[]): readonly ContextItem[] {
  const texts: string[] = [];
  const sections = new Map<string, unknown>();
  let timestamp: number | undefined;
  const start = Math.max(
    0,
    path.findLastIndex(({ type }) => type === "compaction"),
  );
  for (const { type, raw, timestamp: time } of path.slice(start)) {
    const message = type === "message" ? raw["message"] : type === "compaction" ? raw["systemMessage"] : undefined;
    if (!isRecord(message) || message["role"] !== "system") continue;
    timestamp ??= time;
    texts.push(...contentTexts(message["content"]));
    for (const [name, text] of Object.entries(isRecord(message["sections"]) ? message["sections"] : {})) {
      sections.set(name, text);
    }
  }
  const all = [...texts, ...sections.values()].filter((text) => typeof text === "string" && text !== "");
  if (timestamp === undefined || all.length === 0) return [];
  return [{ role: "system", content: [{ type: "text", text: all.join("\n\n") }], timestamp }];
}

function contentTexts(content: unknown): readonly string[] {
  const blocks = Array.isArray(content)
    ? content.map((block) => (isRecord(block) ? block["text"] : undefined))
    : [content];
  return blocks.filter((text): text is string => typeof text === "string" && text !== "");
}
