import type { BuiltMessage, HelperContext } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";

type Fields = Readonly<Record<string, unknown>>;

const sha256 = /^[0-9a-f]{64}$/;
const imageType = /^image\/[a-z0-9.+-]{1,64}$/;
const policies: ReadonlySet<unknown> = new Set<HelperContext["afterCompaction"]>(["trim", "keep", "drop"]);

/**
 * Returns why a context is invalid. pi must be able to send each message, because an invalid one fails every request.
 */
export function contextError(context: unknown): string | undefined {
  if (!isRecord(context)) return "A context frame needs a context.";
  const { hash, messages, instructions, budget, afterCompaction } = context;
  if (typeof hash !== "string" || !sha256.test(hash)) return "The context needs its hash.";
  if (instructions !== undefined && typeof instructions !== "string") return "The context has invalid instructions.";
  if (budget !== null && !(isNumber(budget) && budget > 0)) return "The context has an invalid budget.";
  if (!policies.has(afterCompaction)) return "The context has an invalid afterCompaction.";
  if (!Array.isArray(messages)) return "The context needs messages.";
  const wrong = messages.findIndex((message) => !isMessage(message));
  return wrong < 0 ? undefined : `pi cannot send message ${wrong} of the context.`;
}

/** Whether pi can send a message. Checks only the fields that pi needs. */
function isMessage(message: unknown): message is BuiltMessage {
  if (!isRecord(message) || !isNumber(message["timestamp"])) return false;
  const { role } = message;
  return typeof role === "string" && Object.hasOwn(roles, role) && roles[role as BuiltMessage["role"]](message);
}

const roles: Readonly<Record<BuiltMessage["role"], (message: Fields) => boolean>> = {
  user: ({ content }) => areParts(content),
  assistant: ({ content, api, provider, model, usage, stopReason }) =>
    Array.isArray(content) &&
    content.every(isAssistantBlock) &&
    [api, provider, model].every(isString) &&
    isRecord(usage) &&
    (stopReason === "stop" || stopReason === "toolUse"),
  toolResult: ({ toolCallId, toolName, content, isError }) =>
    isString(toolCallId) && isString(toolName) && areParts(content) && typeof isError === "boolean",
  custom: ({ customType, content, display }) =>
    isString(customType) && (isString(content) || areParts(content)) && typeof display === "boolean",
  compactionSummary: ({ summary, tokensBefore }) => isString(summary) && isNumber(tokensBefore),
  branchSummary: ({ summary, fromId }) => isString(summary) && isString(fromId),
  bashExecution: ({ command, output, exitCode, cancelled, truncated, fullOutputPath, excludeFromContext }) =>
    isString(command) &&
    isString(output) &&
    (exitCode === undefined || isNumber(exitCode)) &&
    typeof cancelled === "boolean" &&
    typeof truncated === "boolean" &&
    (fullOutputPath === undefined || isString(fullOutputPath)) &&
    (excludeFromContext === undefined || typeof excludeFromContext === "boolean"),
};

function areParts(content: unknown): boolean {
  return Array.isArray(content) && content.every(isPart);
}

function isPart(part: unknown): boolean {
  if (!isRecord(part)) return false;
  const { type, text, data, mimeType } = part;
  if (type === "text") return isString(text);
  return type === "image" && isString(data) && isString(mimeType) && imageType.test(mimeType);
}

/** pi's own blocks: text, thinking and calls, with any additional fields. */
function isAssistantBlock(block: unknown): boolean {
  if (!isRecord(block)) return false;
  switch (block["type"]) {
    case "text":
      return isString(block["text"]);
    case "thinking":
      return isString(block["thinking"]);
    case "toolCall":
      return isString(block["id"]) && isString(block["name"]) && isRecord(block["arguments"]);
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
