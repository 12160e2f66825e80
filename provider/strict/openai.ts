import type { StrictRules, Violation } from "../dialect.ts";
import { isObject, type JsonObject, objectsOf, stringOf } from "../json.ts";
import { identifierPattern, isIdentifier, openaiModel, refuse, repeated, tooManyCacheMarks } from "./rules.ts";

const roles = ["system", "developer", "user", "assistant", "tool"];
const maxCallIdCharacters = 40;

/**
 * The requests that OpenAI's chat completions refuse, and those that compatible servers also refuse: empty texts of
 * users and assistants. An assistant may speak first unless the rules forbid it, because an extension may have removed
 * the only prompt.
 */
export function openaiViolations(body: JsonObject, rules: StrictRules): readonly Violation[] {
  const messages = objectsOf(body["messages"]);
  const tools = objectsOf(body["tools"]);
  return [
    ...openaiModel(body["model"], rules),
    ...(messages.length > 0 ? [] : [refuse("Missing required parameter: 'messages'.")]),
    ...(isObject(body["stream_options"]) && body["stream"] !== true
      ? [refuse("The 'stream_options' parameter is only allowed when 'stream' is enabled.")]
      : []),
    ...messages.flatMap(shape),
    ...(rules.userFirst ? firstSpeaker(messages) : []),
    ...pairing(messages),
    ...tools.flatMap(tool),
    ...tooManyCacheMarks([...messages, ...tools]),
  ];
}

function shape(message: JsonObject, index: number): readonly Violation[] {
  const { role, content } = message;
  const at = `messages[${index}]`;
  const calls = objectsOf(message["tool_calls"]);
  const found: Violation[] = [];
  if (!roles.includes(stringOf(role))) {
    found.push(
      refuse(
        `Invalid value: '${stringOf(role)}'. Supported values are: ${roles.map((name) => `'${name}'`).join(", ")}.`,
      ),
    );
  }
  if (role !== "assistant" && calls.length > 0) {
    found.push(refuse(`Invalid parameter: '${at}.tool_calls' is only allowed for messages with role 'assistant'.`));
  }
  if (role === "user" || role === "assistant") found.push(...emptyTexts(content, calls.length > 0, at));
  const mayBeNull = role === "assistant" && calls.length > 0;
  if (typeof content !== "string" && !Array.isArray(content) && !(mayBeNull && (content ?? null) === null)) {
    found.push(refuse(`Invalid value for 'content': expected a string, got null. (${at}.content)`));
  }
  if (Array.isArray(message["tool_calls"]) && calls.length === 0) {
    found.push(
      refuse(
        `Invalid '${at}.tool_calls': empty array. Expected an array with minimum length 1, but got an empty array instead.`,
      ),
    );
  }
  return [...found, ...calls.flatMap((call, n) => toolCall(call, `${at}.tool_calls[${n}]`))];
}

/** With calls, an empty string counts as no content, as null does. */
function emptyTexts(content: unknown, hasCalls: boolean, at: string): readonly Violation[] {
  const texts = typeof content === "string" ? (hasCalls ? [] : [content]) : partTexts(content);
  return texts.includes("") ? [refuse(`Invalid '${at}.content': text must not be empty.`)] : [];
}

function partTexts(content: unknown): readonly unknown[] {
  return objectsOf(content).flatMap((part) => (part["type"] === "text" ? [part["text"]] : []));
}

function firstSpeaker(messages: readonly JsonObject[]): readonly Violation[] {
  const first = messages.find(({ role }) => role !== "system" && role !== "developer");
  if (first === undefined || first["role"] === "user") return [];
  return [refuse("Invalid 'messages': the first message of the conversation must be from the user.")];
}

function toolCall(call: JsonObject, at: string): readonly Violation[] {
  const declared = call["type"] === "custom" ? call["custom"] : call["function"];
  const { name, arguments: args } = isObject(declared) ? declared : ({} as JsonObject);
  const found: Violation[] = [];
  const id = stringOf(call["id"]);
  if (!isIdentifier(id)) found.push(mismatch(`${at}.id`));
  else if (id.length > maxCallIdCharacters) found.push(tooLong(id, `${at}.id`));
  if (!isIdentifier(name)) found.push(mismatch(`${at}.function.name`));
  if (call["type"] !== "custom" && typeof args !== "string") {
    found.push(refuse(`Invalid type for '${at}.function.arguments': expected a string.`));
  }
  return found;
}

function tool(declaration: JsonObject, index: number): readonly Violation[] {
  const declared = declaration["type"] === "custom" ? declaration["custom"] : declaration["function"];
  return isObject(declared) && isIdentifier(declared["name"]) ? [] : [mismatch(`tools[${index}].function.name`)];
}

function mismatch(parameter: string): Violation {
  return refuse(
    `Invalid '${parameter}': string does not match pattern. Expected a string that matches the pattern '${identifierPattern.source}'.`,
  );
}

function tooLong({ length }: string, parameter: string): Violation {
  const expected = `Expected a string with maximum length ${maxCallIdCharacters}`;
  return refuse(
    `Invalid '${parameter}': string too long. ${expected}, but got a string with length ${length} instead.`,
  );
}

/** Every call is answered once, by the tool messages directly after it, and those answer nothing else. */
function pairing(messages: readonly JsonObject[]): readonly Violation[] {
  const found: Violation[] = [];
  let open: readonly string[] = [];
  let answered: string[] = [];
  const close = (): void => {
    const missing = open.filter((id) => !answered.includes(id));
    if (missing.length > 0) found.push(unanswered(missing));
    for (const id of repeated(answered)) found.push(refuse(`Duplicate tool message for tool_call_id '${id}'.`));
    open = [];
    answered = [];
  };
  for (const [index, message] of messages.entries()) {
    if (message["role"] !== "tool") {
      close();
      open = objectsOf(message["tool_calls"]).map((call) => stringOf(call["id"]));
      for (const id of repeated(open))
        found.push(refuse(`Duplicate value for 'tool_call_id' of '${id}' in message[${index}]`));
      continue;
    }
    const id = stringOf(message["tool_call_id"]);
    if (open.includes(id)) answered.push(id);
    else found.push(orphan(index));
  }
  close();
  return found;
}

function unanswered(ids: readonly string[]): Violation {
  return refuse(
    `An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: ${ids.join(", ")}`,
  );
}

function orphan(index: number): Violation {
  return refuse(
    `Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. (messages[${index}])`,
  );
}
