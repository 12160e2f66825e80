import type { StrictRules, Violation } from "../dialect.ts";
import { isObject, type JsonObject, objectsOf, stringOf } from "../json.ts";
import { anthropicPairing, type Turn } from "./anthropic-pairing.ts";
import { identifierPattern, isIdentifier, refuse, repeated, tooManyCacheMarks } from "./rules.ts";

/** The requests that Anthropic's messages API refuses. */
export function anthropicViolations(body: JsonObject, rules: StrictRules): readonly Violation[] {
  const messages = objectsOf(body["messages"]);
  const tools = objectsOf(body["tools"]);
  const system = objectsOf(body["system"]);
  return [
    ...model(body["model"], rules),
    ...maxTokens(body["max_tokens"]),
    ...(Array.isArray(body["messages"]) ? [] : [refuse("messages: Field required")]),
    ...messages.flatMap((message, index) => shape(message, `messages.${index}`, rules)),
    ...system.flatMap((block) => text(block, "system")),
    ...order(messages),
    ...anthropicPairing(turnsOf(messages)),
    ...tools.flatMap((tool, index) => (isIdentifier(tool["name"]) ? [] : [mismatch(`tools.${index}.custom.name`)])),
    ...(repeated(tools.map((tool) => stringOf(tool["name"]))).length > 0
      ? [refuse("tools: Tool names must be unique.")]
      : []),
    ...tooManyCacheMarks([...system, ...messages, ...tools]),
  ];
}

function model(name: unknown, rules: StrictRules): readonly Violation[] {
  if (typeof name !== "string" || name === "") return [refuse("model: Field required")];
  return rules.models?.includes(name) === false ? [{ message: `model: ${name}`, status: 404 }] : [];
}

function maxTokens(value: unknown): readonly Violation[] {
  if (typeof value !== "number") return [refuse("max_tokens: Field required")];
  return value >= 1 ? [] : [refuse(`max_tokens: ${value} is less than the minimum of 1`)];
}

function shape(message: JsonObject, at: string, rules: StrictRules): readonly Violation[] {
  const { role, content } = message;
  const isKnown = role === "user" || role === "assistant" || (role === "system" && rules.systemMessages);
  const found = isKnown ? [] : [refuse(`${at}.role: Input should be 'user' or 'assistant'`)];
  if (content === "" || (Array.isArray(content) && content.length === 0)) {
    return [
      ...found,
      refuse(`${at}: all messages must have non-empty content except for the optional final assistant message`),
    ];
  }
  if (typeof content === "string") return found;
  if (!Array.isArray(content)) return [...found, refuse(`${at}.content: Field required`)];
  const blocks = objectsOf(content);
  const isThought = role === "assistant" && blocks.at(-1)?.["type"] === "thinking";
  return [
    ...found,
    ...blocks.flatMap((block, index) => contentBlock(block, stringOf(role), `${at}.content.${index}`)),
    ...(isThought ? [refuse(`${at}: The final block in an assistant message cannot be \`thinking\`.`)] : []),
  ];
}

function contentBlock(block: JsonObject, role: string, at: string): readonly Violation[] {
  switch (block["type"]) {
    case "text":
      return text(block, at);
    case "thinking":
      return typeof block["signature"] === "string" ? [] : [refuse(`${at}.thinking.signature: Field required`)];
    case "redacted_thinking":
      return stringOf(block["data"]) === "" ? [refuse(`${at}.redacted_thinking.data: Field required`)] : [];
    case "tool_use":
      return toolUse(block, role, at);
    case "tool_result":
      return [
        ...(role === "user" ? [] : [refuse(`${at}: \`tool_result\` blocks can only be in \`user\` messages`)]),
        ...objectsOf(block["content"]).flatMap((nested) => text(nested, `${at}.tool_result.content`)),
      ];
    default:
      return [];
  }
}

function text(block: JsonObject, at: string): readonly Violation[] {
  if (block["type"] !== "text") return [];
  if (typeof block["text"] !== "string") return [refuse(`${at}.text.text: Field required`)];
  if (block["text"] === "") return [refuse(`${at}: text content blocks must be non-empty`)];
  return block["text"].trim() === "" ? [refuse(`${at}: text content blocks must contain non-whitespace text`)] : [];
}

function toolUse(block: JsonObject, role: string, at: string): readonly Violation[] {
  return [
    ...(role === "assistant" ? [] : [refuse(`${at}: \`tool_use\` blocks can only be in \`assistant\` messages`)]),
    ...(isIdentifier(block["id"]) ? [] : [mismatch(`${at}.tool_use.id`)]),
    ...(isIdentifier(block["name"]) ? [] : [mismatch(`${at}.tool_use.name`)]),
    ...(isObject(block["input"]) ? [] : [refuse(`${at}.tool_use.input: Input should be a valid dictionary`)]),
  ];
}

function mismatch(at: string): Violation {
  return refuse(`${at}: String should match pattern '${identifierPattern.source}'`);
}

function order(messages: readonly JsonObject[]): readonly Violation[] {
  const turns = messages.filter((message) => message["role"] !== "system");
  if (turns.length === 0) return [refuse("messages: at least one message is required")];
  return [
    ...(turns[0]?.["role"] === "user" ? [] : [refuse('messages: first message must use the "user" role')]),
    ...(turns.at(-1)?.["role"] === "user"
      ? []
      : [
          refuse(
            "This model does not support assistant message prefill. The conversation must end with a user message.",
          ),
        ]),
  ];
}

/** Adjacent messages of one role are one turn, as for the API. */
function turnsOf(messages: readonly JsonObject[]): readonly Turn[] {
  const turns: { role: string; at: string; blocks: JsonObject[] }[] = [];
  for (const [index, message] of messages.entries()) {
    const role = stringOf(message["role"]);
    if (role === "system") continue;
    const blocks = typeof message["content"] === "string" ? [{ type: "text" }] : objectsOf(message["content"]);
    const last = turns.at(-1);
    if (last?.role === role) last.blocks.push(...blocks);
    else turns.push({ role, at: `messages.${index}`, blocks: [...blocks] });
  }
  return turns;
}
