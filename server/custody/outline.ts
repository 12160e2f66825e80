import { isRecord } from "../../protocol/objects.ts";
import type { OutlineEntry } from "../../protocol/transcript-methods.ts";
import type { Line } from "./entry-file.ts";
import { type EntryPlace, isEntryId } from "./entry-places.ts";
import { cutLine } from "./long-texts.ts";
import type { StoredEntry } from "./stored-entries.ts";

const textChars = 200;
const wordChars = 64;
const maxTools = 4;

/** The outline of the entry of a line. Undefined: the line is not JSON, and pi skips it. */
export function outlineOfLine(line: Line, place: EntryPlace): OutlineEntry | undefined {
  const entry = cutLine(line, place)?.entry;
  return entry?.["id"] === place.id ? outlineOf(entry) : undefined;
}

/** The place of an entry in the tree, and its first words. Undefined: clients cannot name it. */
export function outlineOf(entry: StoredEntry): OutlineEntry | undefined {
  const { id, parentId, type, timestamp, message, targetId } = entry;
  if (!isEntryId(id) || typeof type !== "string" || type === "session") return undefined;
  const at = Date.parse(stringOf(timestamp));
  const role = isRecord(message) ? message["role"] : undefined;
  const text = first(isRecord(message) ? textOfMessage(message) : textOfEntry(entry), textChars);
  const tools = isRecord(message) ? toolsOf(message) : [];
  return {
    entryId: id,
    parentId: isEntryId(parentId) ? parentId : null,
    type: first(type, wordChars),
    ...(at >= 0 && { at }),
    ...(typeof role === "string" && { role: first(role, wordChars) }),
    ...(text !== "" && { text }),
    ...(tools.length > 0 && { tools }),
    ...(isEntryId(targetId) && { targetId }),
  };
}

function textOfMessage({ content, command, errorMessage }: StoredEntry): string {
  return textIn(content) || stringOf(command) || stringOf(errorMessage);
}

function textOfEntry({
  type,
  summary,
  label,
  name,
  content,
  provider,
  modelId,
  thinkingLevel,
  customType,
}: StoredEntry) {
  switch (type) {
    case "model_change":
      return `${stringOf(provider)}/${stringOf(modelId)}`;
    case "thinking_level_change":
      return stringOf(thinkingLevel);
    case "custom_message":
      return textIn(content) || stringOf(customType);
    default:
      return [summary, label, name, customType].map(stringOf).find((text) => text !== "") ?? "";
  }
}

/** The texts of a content until there is enough. */
function textIn(content: unknown): string {
  if (typeof content === "string") return content.trimStart();
  let text = "";
  for (const block of Array.isArray(content) ? (content as unknown[]) : []) {
    if (!isRecord(block) || block["type"] !== "text") continue;
    text = `${text}${text === "" ? "" : "\n"}${stringOf(block["text"])}`.trimStart();
    if (text.length >= textChars) break;
  }
  return text;
}

function toolsOf({ content, toolName }: StoredEntry): string[] {
  if (typeof toolName === "string") return [first(toolName, wordChars)];
  const tools: string[] = [];
  for (const block of Array.isArray(content) ? (content as unknown[]) : []) {
    if (isRecord(block) && block["type"] === "toolCall") tools.push(first(stringOf(block["name"]), wordChars));
    if (tools.length === maxTools) break;
  }
  return tools;
}

/** The first UTF-16 units, without half a character at the end. */
function first(text: string, units: number): string {
  return text.slice(0, units).replace(/[\uD800-\uDBFF]$/, "");
}

function stringOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}
