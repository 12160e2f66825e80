import { isObject, type JsonObject, objectsOf, stringOf } from "../json.ts";
import type { LogEntry } from "../log.ts";
import type { RequestMessage } from "../messages.ts";

/** A piece of the model's input. Requests that begin with the same pieces have a common prefix. */
export interface ReadBlock {
  readonly text: string;
  readonly imageCount: number;
  /** The piece has a cache mark: what precedes it is cached for the usual time, or for an hour. Anthropic only. */
  readonly mark?: "usual" | "hour";
}

/** Roles, ids and separators of messages, as text of about as many tokens as services count for them. */
const border = (role: string): string => `<|${role}|>\n`;

/**
 * The model's input of a request, in the order in which services cache it: the tools, the system prompt, the messages.
 */
export function readingOf({ api, body, messages }: Pick<LogEntry, "api" | "body" | "messages">): readonly ReadBlock[] {
  if (api === "anthropic") return anthropicBlocks(body);
  const tools = objectsOf(body["tools"]).map((tool) => ({ text: JSON.stringify(tool), imageCount: 0 }));
  return [...tools, ...messages.map(messageBlock)];
}

function messageBlock({ role, texts, thinking, toolCalls, toolResults, imageCount }: RequestMessage): ReadBlock {
  const calls = toolCalls.map(({ id, name, arguments: args }) => `${id} ${name} ${JSON.stringify(args) ?? ""}`);
  const results = toolResults.map(({ callId, text }) => `${callId}\n${text}`);
  return { text: border(role) + [...thinking, ...texts, ...calls, ...results].join("\n"), imageCount };
}

function anthropicBlocks(body: JsonObject): readonly ReadBlock[] {
  const tools = objectsOf(body["tools"]).map((tool) =>
    block(tool, JSON.stringify({ ...tool, cache_control: undefined })),
  );
  const system = contentBlocks(body["system"]).map((part) => block(part, stringOf(part["text"])));
  const messages = objectsOf(body["messages"]).flatMap((message) =>
    contentBlocks(message["content"]).map((part, index) => {
      const head = index === 0 ? border(stringOf(message["role"])) : "";
      return block(part, head + partText(part));
    }),
  );
  return [...tools, ...system, ...messages];
}

function contentBlocks(content: unknown): readonly JsonObject[] {
  return typeof content === "string" ? [{ type: "text", text: content }] : objectsOf(content);
}

function partText(part: JsonObject): string {
  switch (part["type"]) {
    case "text":
      return stringOf(part["text"]);
    case "thinking":
      return stringOf(part["thinking"]);
    case "image":
      return "";
    case "tool_use":
      return `${stringOf(part["id"])} ${stringOf(part["name"])} ${JSON.stringify(part["input"])}`;
    case "tool_result":
      return `${stringOf(part["tool_use_id"])}\n${contentBlocks(part["content"]).map(partText).join("\n")}`;
    default:
      return JSON.stringify({ ...part, cache_control: undefined });
  }
}

function block(part: JsonObject, text: string): ReadBlock {
  const mark = part["cache_control"];
  const imageCount = [part, ...objectsOf(part["content"])].filter(({ type }) => type === "image").length;
  if (!isObject(mark)) return { text, imageCount };
  return { text, imageCount, mark: mark["ttl"] === "1h" ? "hour" : "usual" };
}
