import type { BuiltMessage, HelperContext } from "../../protocol/link-context.ts";
import { isObject } from "../pi-types.ts";

type Fields = Readonly<Record<string, unknown>>;

const sha256 = /^[0-9a-f]{64}$/;
const imageType = /^image\/[a-z0-9.+-]{1,64}$/;
const policies: ReadonlySet<unknown> = new Set<HelperContext["afterCompaction"]>(["trim", "keep", "drop"]);

/** Why a context cannot be taken: each message must be one that pi can send, since a wrong one fails every request. */
export function whatIsWrongWithContext(context: unknown): string | undefined {
  if (!isObject(context)) return "A context frame needs a context.";
  const { hash, messages, instructions, budget, afterCompaction } = context;
  if (typeof hash !== "string" || !sha256.test(hash)) return "A context needs its hash.";
  if (instructions !== undefined && typeof instructions !== "string") return "A context has wrong instructions.";
  if (budget !== null && !(isNumber(budget) && budget > 0)) return "A context has a wrong budget.";
  if (!policies.has(afterCompaction)) return "A context has a wrong afterCompaction.";
  if (!Array.isArray(messages)) return "A context needs messages.";
  const wrong = messages.findIndex((message) => !isMessage(message));
  return wrong < 0 ? undefined : `The context's message ${wrong} is none that pi can send.`;
}

/** Whether pi can send a message as it is: no other fields are looked at than those without which it could not. */
function isMessage(message: unknown): message is BuiltMessage {
  if (!isObject(message) || !isNumber(message["timestamp"])) return false;
  const { role } = message;
  return typeof role === "string" && Object.hasOwn(roles, role) && roles[role as BuiltMessage["role"]](message);
}

const roles: Readonly<Record<BuiltMessage["role"], (message: Fields) => boolean>> = {
  user: ({ content }) => areParts(content),
  assistant: ({ content, api, provider, model, usage, stopReason }) =>
    Array.isArray(content) &&
    content.every(isAssistantBlock) &&
    [api, provider, model].every(isString) &&
    isObject(usage) &&
    (stopReason === "stop" || stopReason === "toolUse"),
  toolResult: ({ toolCallId, toolName, content, isError }) =>
    isString(toolCallId) && isString(toolName) && areParts(content) && typeof isError === "boolean",
  custom: ({ customType, content, display }) =>
    isString(customType) && (isString(content) || areParts(content)) && typeof display === "boolean",
  compactionSummary: ({ summary, tokensBefore }) => isString(summary) && isNumber(tokensBefore),
  branchSummary: ({ summary, fromId }) => isString(summary) && isString(fromId),
  bashExecution: ({ command, output, exitCode, cancelled, truncated }) =>
    isString(command) &&
    isString(output) &&
    (exitCode === undefined || isNumber(exitCode)) &&
    typeof cancelled === "boolean" &&
    typeof truncated === "boolean",
};

function areParts(content: unknown): boolean {
  return Array.isArray(content) && content.every(isPart);
}

function isPart(part: unknown): boolean {
  if (!isObject(part)) return false;
  const { type, text, data, mimeType } = part;
  if (type === "text") return isString(text);
  return type === "image" && isString(data) && isString(mimeType) && imageType.test(mimeType);
}

/** pi's own blocks: text, thinking and calls, with whatever else a model's own blocks have. */
function isAssistantBlock(block: unknown): boolean {
  if (!isObject(block)) return false;
  switch (block["type"]) {
    case "text":
      return isString(block["text"]);
    case "thinking":
      return isString(block["thinking"]);
    case "toolCall":
      return isString(block["id"]) && isString(block["name"]) && isObject(block["arguments"]);
    default:
      return false;
  }
}

function isString(value: unknown): value is string {
  return typeof value === "string";
}

function isNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value);
}
