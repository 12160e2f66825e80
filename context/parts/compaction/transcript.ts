import type { AgentMessage } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";

/** A context as one text to summarize; a model does not continue a conversation that is quoted as text. */
export function transcriptOf(messages: readonly AgentMessage[], resultChars: number): string {
  const toolNames = new Map<unknown, string>();
  return messages
    .flatMap((message) => linesOf(message, resultChars, toolNames))
    .join("\n\n")
    .replaceAll("</conversation", "<\\/conversation");
}

function linesOf(message: AgentMessage, resultChars: number, toolNames: Map<unknown, string>): readonly string[] {
  const fields = message as unknown as Readonly<Record<string, unknown>>;
  switch (message.role) {
    case "system":
      return [];
    case "user":
      return [`[User] ${textOf(fields["content"])}`];
    case "assistant":
      return assistantLines(fields["content"], toolNames);
    case "toolResult": {
      const name = toolNames.get(fields["toolCallId"]) ?? String(fields["toolName"]);
      const failed = fields["isError"] === true ? ", an error" : "";
      return [`[Result of ${name}${failed}] ${ends(textOf(fields["content"]), resultChars)}`];
    }
    case "compactionSummary":
      return [`[Summary of what came before] ${String(fields["summary"])}`];
    case "branchSummary":
      return [`[Summary of an abandoned branch] ${String(fields["summary"])}`];
    case "bashExecution":
      if (fields["excludeFromContext"] === true) return [];
      return [`[The user ran] ${String(fields["command"])}\n${ends(String(fields["output"]), resultChars)}`];
    default:
      return [`[Message] ${textOf(fields["content"])}`];
  }
}

function assistantLines(content: unknown, toolNames: Map<unknown, string>): readonly string[] {
  if (!Array.isArray(content)) return [`[Assistant] ${textOf(content)}`];
  return content.flatMap((block: unknown) => {
    if (!isRecord(block)) return [];
    if (block["type"] === "text") return [`[Assistant] ${String(block["text"])}`];
    if (block["type"] !== "toolCall") return [];
    toolNames.set(block["id"], String(block["name"]));
    return [`[Assistant called ${String(block["name"])}] ${jsonOf(block["arguments"])}`];
  });
}

function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content
    .map((block: unknown) => {
      if (!isRecord(block)) return "";
      return block["type"] === "text" ? String(block["text"]) : `(${String(block["type"])})`;
    })
    .join("\n");
}

/** Keeps both ends of a text, because the end usually contains the outcome. */
export function ends(text: string, most: number): string {
  if (text.length <= most) return text;
  const head = text.slice(0, Math.floor(most / 2)).toWellFormed();
  const tail = text.slice(text.length - Math.ceil(most / 2)).toWellFormed();
  return `${head}\n(${text.length - most} characters are left out here)\n${tail}`;
}

function jsonOf(value: unknown): string {
  try {
    return ends(JSON.stringify(value) ?? "", 2_000);
  } catch {
    return "";
  }
}
