import { CARRIER_TYPE } from "../../../protocol/link.ts";
import { isRecord } from "../../../protocol/objects.ts";
import type { SearchHit } from "../../../protocol/transcript-methods.ts";

/** A text of an entry that people and models read. */
export interface EntryText {
  readonly kind: SearchHit["kind"];
  readonly text: string;
}

type Value = Readonly<Record<string, unknown>>;

/** The texts of an entry, in their order. Not keys, names of tools, data of extensions, and images. */
export function* textsOf(entry: Value): Generator<EntryText> {
  switch (entry["type"]) {
    case "message":
      if (isRecord(entry["message"])) yield* messageTexts(entry["message"]);
      return;
    case "custom_message":
      if (isShown(entry)) yield* contentTexts("custom", entry["content"]);
      return;
    case "compaction":
    case "branch_summary":
      yield* oneText("summary", entry["summary"]);
      return;
    case "session_info":
      yield* oneText("name", entry["name"]);
  }
}

function* messageTexts(message: Value): Generator<EntryText> {
  const { role, content } = message;
  if (role === "user") yield* contentTexts("user", content);
  else if (role === "assistant") yield* contentTexts("assistant", content);
  else if (role === "toolResult") yield* contentTexts("toolResult", content);
  else if (role === "bashExecution") {
    yield* oneText("bash", message["command"]);
    yield* oneText("bash", message["output"]);
  }
}

function* contentTexts(kind: EntryText["kind"], content: unknown): Generator<EntryText> {
  if (!Array.isArray(content)) {
    yield* oneText(kind, content);
    return;
  }
  for (const block of content) {
    if (!isRecord(block)) continue;
    if (block["type"] === "text") yield* oneText(kind, block["text"]);
    else if (block["type"] === "thinking") yield* oneText("thinking", block["thinking"]);
    else if (block["type"] === "toolCall") yield* stringsIn(block["arguments"]);
  }
}

/** The strings of a call's arguments. Without recursion: each string would pass through all levels above it. */
function* stringsIn(value: unknown): Generator<EntryText> {
  const open = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next === "string") yield { kind: "toolCall", text: next };
    else if (typeof next === "object" && next !== null) {
      for (const part of Object.values(next).reverse()) open.push(part);
    }
  }
}

function* oneText(kind: EntryText["kind"], text: unknown): Generator<EntryText> {
  if (typeof text === "string" && text !== "") yield { kind, text };
}

/** Not carriers, and not what an extension hides, unless it is a push. */
function isShown({ customType, display, details }: Value): boolean {
  if (customType === CARRIER_TYPE) return false;
  return display !== false || (isRecord(details) && isRecord(details["pi-rpcd"]) && "deliveryId" in details["pi-rpcd"]);
}
