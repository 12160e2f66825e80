import { isObject } from "../../../extension/pi-types.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What a request's cache depends on, in the order in which services read it. */
export interface PayloadView {
  /** Declarations, one each. */
  readonly tools: readonly unknown[];
  readonly system: readonly unknown[];
  /** Behind the prompt. */
  readonly messages: readonly unknown[];
  /** How the model is to think, and which tool it must call: services keep caches apart by them. */
  readonly settings: Fields;
  /** Whether the request says itself what is to be cached. */
  readonly isMarked: boolean;
}

/** The key of a mark, at Anthropic and at those who have taken it over. */
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

/** `undefined`: of an API that is not known here. */
export function viewOf(payload: unknown): PayloadView | undefined {
  if (!isObject(payload)) return undefined;
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
  if (Array.isArray(contents) && isObject(config)) {
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

/** A message has blocks, and the result of a call has blocks of its own. */
export const maxNesting = 3;

/** Marks in blocks, and in blocks within them. */
export function countMarks(blocks: readonly unknown[], depth = 0): number {
  if (depth >= maxNesting) return 0;
  return blocks.reduce<number>((sum, block) => sum + (isMarkedBlock(block) ? 1 : 0) + marksIn(block, depth + 1), 0);
}

function marksIn(holder: unknown, depth = 1): number {
  return isObject(holder) && Array.isArray(holder["content"]) ? countMarks(holder["content"], depth) : 0;
}

export function isMarkedBlock(block: unknown): boolean {
  return isObject(block) && block[MARK] !== undefined && block[MARK] !== null;
}

/** The prompt, where it is the first of the messages, and the conversation. */
function split(messages: readonly unknown[]): readonly [readonly unknown[], readonly unknown[]] {
  const behind = messages.findIndex((message) => !isPrompt(message));
  const at = behind === -1 ? messages.length : behind;
  return [messages.slice(0, at), messages.slice(at)];
}

function isPrompt(message: unknown): boolean {
  return isObject(message) && (message["role"] === "system" || message["role"] === "developer");
}

function settingsOf(payload: Fields): Fields {
  return Object.fromEntries(
    settingNames.flatMap((name) => (payload[name] === undefined ? [] : [[name, payload[name]]])),
  );
}

function googleTools({ tools }: Fields): readonly unknown[] {
  return listOf(tools).flatMap((tool) =>
    isObject(tool) && Array.isArray(tool["functionDeclarations"]) ? tool["functionDeclarations"] : [tool],
  );
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** A tool's name as the payload has it. */
export function toolName(tool: unknown): string | undefined {
  if (!isObject(tool)) return undefined;
  const { name, function: inner } = tool;
  if (typeof name === "string") return name;
  return isObject(inner) && typeof inner["name"] === "string" ? inner["name"] : undefined;
}

/** A tool that the service shows the model only when something asks for it: it stands in no prefix. */
export function isDeferred(tool: unknown): boolean {
  return isObject(tool) && tool["defer_loading"] === true;
}

/** Whether a request asks for one token only, as pi does to keep a cache warm. */
export function asksForOneToken(payload: unknown): boolean {
  if (!isObject(payload)) return false;
  const { config } = payload;
  const limits = [payload["max_tokens"], payload["max_completion_tokens"], payload["max_output_tokens"]];
  return limits.includes(1) || (isObject(config) && config["maxOutputTokens"] === 1);
}
