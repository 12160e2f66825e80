import { isRecord } from "../../../protocol/objects.ts";

type Fields = Readonly<Record<string, unknown>>;

/** An instruction to add to a request. */
export interface Instruction {
  readonly text: string;
  /** Tokens that the answer may have, without its thinking. */
  readonly maxTokens: number;
  readonly isThinking: boolean;
  /** Whether a message at the end of the request is text that only this request had. */
  readonly isPassing: (message: unknown) => boolean;
}

export interface Continuation {
  readonly payload: Fields;
  /** Tokens that the answer may have. */
  readonly maxTokens: number;
}

/** APIs whose requests differ from the ones before only at their end. */
const apis: ReadonlySet<string> = new Set([
  "anthropic-messages",
  "azure-openai-responses",
  "openai-completions",
  "openai-responses",
]);
const limits = ["max_tokens", "max_completion_tokens", "max_output_tokens"] as const;
/** Fields with the thinking of an answer. */
const thoughts = ["reasoning", "reasoning_content", "reasoning_details", "reasoning_text"] as const;
/** Tokens for thinking without a budget of its own. */
const thinkingRoom = 8_192;

/**
 * Returns the request with one more message of the user. It has no cache mark: what it adds is read once. The marks before it
 * stay, so a service reads the same cache as for the request itself. `undefined`: an unknown API, the service would drop
 * thinking because of the message, or the request demands a call.
 */
export function continuationOf(payload: Fields, api: string, instruction: Instruction): Continuation | undefined {
  const { text } = instruction;
  const name = Array.isArray(payload["messages"]) ? "messages" : "input";
  const list: unknown = payload[name];
  if (!apis.has(api) || !Array.isArray(list) || dropsThinking(payload, list) || demandsCall(payload)) return undefined;
  const maxTokens = instruction.maxTokens + roomFor(payload, instruction);
  const message = { role: "user", content: name === "messages" ? text : [{ type: "input_text", text }] };
  return { maxTokens, payload: { ...withLimit(payload, maxTokens), [name]: added(list, message, instruction) } };
}

/** pi's requests do not, but other extensions can change them. */
function demandsCall({ tool_choice: choice = "auto" }: Fields): boolean {
  const kind = isRecord(choice) ? choice["type"] : choice;
  return kind !== "auto" && kind !== "none" && kind !== null;
}

/**
 * Most services show a model only the thinking since the user's last message, so a further message changes what precedes it.
 * Models of Anthropic that think adaptively see all of it.
 */
function dropsThinking({ thinking }: Fields, list: readonly unknown[]): boolean {
  if (isRecord(thinking) && thinking["type"] === "adaptive") return false;
  return list.slice(list.findLastIndex(isOfUser) + 1).some(hasThinking);
}

function isOfUser(message: unknown): boolean {
  if (!isRecord(message) || message["role"] !== "user") return false;
  return !blocksOf(message).some(({ type }) => type === "tool_result");
}

function hasThinking(message: unknown): boolean {
  if (!isRecord(message)) return false;
  return (
    message["type"] === "reasoning" ||
    thoughts.some((name) => Boolean(message[name])) ||
    blocksOf(message).some(({ type }) => type === "thinking" || type === "redacted_thinking")
  );
}

function blocksOf({ content }: Fields): readonly Fields[] {
  return Array.isArray(content) ? content.filter(isRecord) : [];
}

function added(messages: readonly unknown[], message: object, { isPassing }: Instruction): readonly unknown[] {
  let end = messages.length;
  while (end > 0 && isEffort(messages[end - 1])) end -= 1;
  let kept = end;
  while (kept > 0 && isPassing(messages[kept - 1])) kept -= 1;
  return [...messages.slice(0, kept), message, ...messages.slice(end)];
}

/** Whether a message only sets the effort of the answer to come, as pi adds one for some models of Anthropic. */
function isEffort(message: unknown): boolean {
  if (!isRecord(message) || message["role"] !== "system") return false;
  const { content } = message;
  return Array.isArray(content) && content.length === 0;
}

/** The limit of an answer includes its thinking. */
function roomFor({ thinking }: Fields, { isThinking }: Instruction): number {
  if (isRecord(thinking) && typeof thinking["budget_tokens"] === "number") return thinking["budget_tokens"];
  return isThinking ? thinkingRoom : 0;
}

function withLimit(payload: Fields, maxTokens: number): Fields {
  const given = limits.filter((name) => typeof payload[name] === "number");
  return {
    ...payload,
    ...Object.fromEntries(given.map((name) => [name, Math.min(payload[name] as number, maxTokens)])),
  };
}
