import { isRecord } from "../../../protocol/objects.ts";

type Fields = Readonly<Record<string, unknown>>;

/** The parts of a request that its cache depends on, in the order in which services read them. */
export interface PayloadView {
  /** Declarations, one each. */
  readonly tools: readonly unknown[];
  readonly system: readonly unknown[];
  /** Messages after the prompt. */
  readonly messages: readonly unknown[];
  /** Thinking and tool choice: services keep separate caches for them. */
  readonly settings: Fields;
  /** Whether the request contains cache marks. */
  readonly isMarked: boolean;
}

/** The key of a cache mark, of Anthropic and compatible services. */
export const MARK = "cache_control";

const settingNames = [
  "thinking",
  "output_config",
  "tool_choice",
  "reasoning",
  "reasoning_effort",
  "enable_thinking",
  "chat_template_kwargs",
] as const;

/** `undefined`: the payload of an unknown API. */
export function viewOf(payload: unknown): PayloadView | undefined {
  if (!isRecord(payload)) return undefined;
  const { messages, input, contents, config } = payload;
  if (Array.isArray(messages)) {
    const { system } = payload;
    const [head, rest] = system === undefined ? split(messages) : [[system].flat(), messages];
    return view(listOf(payload["tools"]), head, rest, settingsOf(payload));
  }
  if (Array.isArray(input)) {
    const [head, rest] = split(input);
    return view(listOf(payload["tools"]), [payload["instructions"], ...head], rest, settingsOf(payload));
  }
  if (Array.isArray(contents) && isRecord(config)) {
    const { systemInstruction, toolConfig, thinkingConfig } = config;
    return view(googleTools(config), [systemInstruction], contents, { toolConfig, thinkingConfig });
  }
  return undefined;
}

function view(
  tools: readonly unknown[],
  system: readonly unknown[],
  messages: readonly unknown[],
  settings: Fields,
): PayloadView {
  const isMarked = countMarks(system) + countMarks(tools) > 0 || messages.some((message) => marksIn(message) > 0);
  return { tools, system, messages, settings, isMarked };
}

/** A message has blocks, and a tool result has nested blocks. */
export const maxNesting = 3;

/** Marks in blocks, and in blocks within them. */
export function countMarks(blocks: readonly unknown[], depth = 0): number {
  if (depth >= maxNesting) return 0;
  return blocks.reduce<number>((sum, block) => sum + (isMarkedBlock(block) ? 1 : 0) + marksIn(block, depth + 1), 0);
}

function marksIn(holder: unknown, depth = 1): number {
  return isRecord(holder) && Array.isArray(holder["content"]) ? countMarks(holder["content"], depth) : 0;
}

export function isMarkedBlock(block: unknown): boolean {
  return isRecord(block) && block[MARK] !== undefined && block[MARK] !== null;
}

/** Splits leading system messages from the conversation. */
function split(messages: readonly unknown[]): readonly [readonly unknown[], readonly unknown[]] {
  const found = messages.findIndex((message) => !isPrompt(message));
  const at = found === -1 ? messages.length : found;
  return [messages.slice(0, at), messages.slice(at)];
}

function isPrompt(message: unknown): boolean {
  return isRecord(message) && (message["role"] === "system" || message["role"] === "developer");
}

function settingsOf(payload: Fields): Fields {
  return Object.fromEntries(
    settingNames.flatMap((name) => (payload[name] === undefined ? [] : [[name, payload[name]]])),
  );
}

function googleTools({ tools }: Fields): readonly unknown[] {
  return listOf(tools).flatMap((tool) =>
    isRecord(tool) && Array.isArray(tool["functionDeclarations"]) ? tool["functionDeclarations"] : [tool],
  );
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The name of a tool in a payload. */
export function toolName(tool: unknown): string | undefined {
  if (!isRecord(tool)) return undefined;
  const { name, function: inner } = tool;
  if (typeof name === "string") return name;
  return isRecord(inner) && typeof inner["name"] === "string" ? inner["name"] : undefined;
}

/** Whether the service shows the tool to the model only on demand, so that it is not part of the cached prefix. */
export function isDeferred(tool: unknown): boolean {
  return isRecord(tool) && tool["defer_loading"] === true;
}

/** The least `max_output_tokens` of OpenAI's Responses API, which pi sends instead of 1. */
const leastOfResponses = 16;

/** Whether a request asks for a single token, or as few as the API allows, as pi's keep-warm requests do. */
export function asksForOneToken(payload: unknown): boolean {
  if (!isRecord(payload)) return false;
  const { config, max_output_tokens: ofResponses } = payload;
  if (ofResponses === leastOfResponses) return true;
  const limits = [payload["max_tokens"], payload["max_completion_tokens"], ofResponses];
  return limits.includes(1) || (isRecord(config) && config["maxOutputTokens"] === 1);
}
