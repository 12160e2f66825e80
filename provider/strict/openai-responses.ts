import type { StrictRules, Violation } from "../dialect.ts";
import { type JsonObject, objectsOf, stringOf } from "../json.ts";
import { identifierPattern, isIdentifier, openaiModel, refuse, repeated } from "./rules.ts";

const roles = ["assistant", "system", "developer", "user"];
const maxIdCharacters = 64;
const leastOutputTokens = 16;

/** The kinds of items, and the prefix of each kind's ids. */
const idPrefixes: Readonly<Record<string, string>> = {
  message: "msg",
  reasoning: "rs",
  function_call: "fc",
  function_call_output: "",
  custom_tool_call: "ctc",
  custom_tool_call_output: "",
  item_reference: "",
  additional_tools: "",
  tool_search_call: "",
  tool_search_output: "",
};

/**
 * The requests that OpenAI's Responses API refuses, and those that compatible servers also refuse: empty texts and, if
 * the rules say so, a conversation that does not begin with the user.
 */
export function responsesViolations(body: JsonObject, rules: StrictRules): readonly Violation[] {
  const { input } = body;
  const items: readonly JsonObject[] =
    typeof input === "string" ? [{ role: "user", content: input }] : objectsOf(input);
  return [
    ...openaiModel(body["model"], rules),
    ...(items.length > 0 ? [] : [refuse("Missing required parameter: 'input'.")]),
    ...outputTokens(body["max_output_tokens"]),
    ...items.flatMap(shape),
    ...order(items),
    ...(rules.userFirst ? firstSpeaker(items) : []),
    ...responsesPairing(items),
    ...objectsOf(body["tools"]).flatMap((tool, index) =>
      "name" in tool || tool["type"] === "function" ? name(tool["name"], `tools[${index}].name`) : [],
    ),
  ];
}

function outputTokens(value: unknown): readonly Violation[] {
  if (typeof value !== "number" || value >= leastOutputTokens) return [];
  const expected = `Expected a value >= ${leastOutputTokens}, but got ${value} instead.`;
  return [refuse(`Invalid 'max_output_tokens': integer below minimum value. ${expected}`)];
}

function shape(item: JsonObject, index: number): readonly Violation[] {
  const at = `input[${index}]`;
  const type = stringOf(item["type"] ?? "message");
  if (!Object.hasOwn(idPrefixes, type)) return [unknown(type, Object.keys(idPrefixes), at)];
  const found = [...itemId(item["id"], idPrefixes[type] ?? "", `${at}.id`)];
  switch (type) {
    case "message":
      found.push(...message(item, at));
      break;
    case "function_call":
    case "custom_tool_call":
      found.push(...id(item["call_id"], `${at}.call_id`), ...name(item["name"], `${at}.name`));
      found.push(...string(item, type === "function_call" ? "arguments" : "input", at));
      break;
    case "function_call_output":
    case "custom_tool_call_output":
      found.push(...id(item["call_id"], `${at}.call_id`));
      found.push(
        ...(Array.isArray(item["output"]) ? parts(item["output"], "user", `${at}.output`) : string(item, "output", at)),
      );
      break;
    case "reasoning":
      if (!Array.isArray(item["summary"])) found.push(refuse(`Missing required parameter: '${at}.summary'.`));
      break;
  }
  return found;
}

function string(item: JsonObject, key: string, at: string): readonly Violation[] {
  if (typeof item[key] === "string") return [];
  if ((item[key] ?? null) === null) return [refuse(`Missing required parameter: '${at}.${key}'.`)];
  return [refuse(`Invalid type for '${at}.${key}': expected a string, but got something else instead.`)];
}

function unknown(value: string, known: readonly string[], at: string): Violation {
  const list = known.map((each) => `'${each}'`).join(", ");
  return refuse(`Invalid value: '${value}'. Supported values are: ${list}. (${at})`);
}

function message(item: JsonObject, at: string): readonly Violation[] {
  const role = stringOf(item["role"]);
  const { content } = item;
  if (!roles.includes(role)) return [unknown(role, roles, `${at}.role`)];
  if (typeof content === "string") return content === "" ? [emptyText(`${at}.content`)] : [];
  if (!Array.isArray(content)) return [refuse(`Missing required parameter: '${at}.content'.`)];
  if (content.length === 0) return [emptyText(`${at}.content`)];
  return parts(content, role, `${at}.content`);
}

function parts(content: readonly unknown[], role: string, at: string): readonly Violation[] {
  const known = role === "assistant" ? ["output_text", "refusal"] : ["input_text", "input_image", "input_file"];
  return objectsOf(content).flatMap((part, index) => {
    const where = `${at}[${index}]`;
    const type = stringOf(part["type"]);
    if (!known.includes(type)) return [unknown(type, known, where)];
    if (type !== "input_text" && type !== "output_text") return [];
    if (typeof part["text"] !== "string") return [refuse(`Missing required parameter: '${where}.text'.`)];
    return part["text"] === "" ? [emptyText(`${where}.text`)] : [];
  });
}

function emptyText(at: string): Violation {
  return refuse(
    `Invalid '${at}': empty string. Expected a string with minimum length 1, but got an empty string instead.`,
  );
}

function itemId(value: unknown, prefix: string, at: string): readonly Violation[] {
  if (value === undefined || value === null) return [];
  const found = id(value, at);
  if (found.length > 0 || stringOf(value).startsWith(prefix)) return found;
  return [refuse(`Invalid '${at}': '${stringOf(value)}'. Expected an ID that begins with '${prefix}'.`)];
}

function id(value: unknown, at: string): readonly Violation[] {
  if (typeof value !== "string") return [refuse(`Missing required parameter: '${at}'.`)];
  if (value === "") return [emptyText(at)];
  if (value.length > maxIdCharacters) return [tooLong(value, at)];
  if (isIdentifier(value)) return [];
  const expected = "Expected an ID that contains letters, numbers, underscores, or dashes";
  return [refuse(`Invalid '${at}': '${value}'. ${expected}, but this value contained additional characters.`)];
}

function name(value: unknown, at: string): readonly Violation[] {
  if (isIdentifier(value)) return [];
  if (typeof value !== "string") return [refuse(`Missing required parameter: '${at}'.`)];
  if (value.length > maxIdCharacters) return [tooLong(value, at)];
  const expected = `Expected a string that matches the pattern '${identifierPattern.source}'.`;
  return [refuse(`Invalid '${at}': string does not match pattern. ${expected}`)];
}

function tooLong(value: string, at: string): Violation {
  const expected = `Expected a string with maximum length ${maxIdCharacters}`;
  return refuse(`Invalid '${at}': string too long. ${expected}, but got a string with length ${value.length} instead.`);
}

/** Ids are not repeated, and reasoning precedes its result. */
function order(items: readonly JsonObject[]): readonly Violation[] {
  const found: Violation[] = [];
  for (const id of repeated(items.flatMap(({ id }) => (typeof id === "string" ? [id] : [])))) {
    found.push(refuse(`Duplicate item found with id ${id}. Remove duplicate items from your input and try again.`));
  }
  for (const [index, item] of items.entries()) {
    if (item["type"] !== "reasoning" || isOutput(items[index + 1])) continue;
    const named = `Item '${stringOf(item["id"])}' of type 'reasoning'`;
    found.push(refuse(`${named} was provided without its required following item.`));
  }
  return found;
}

function firstSpeaker(items: readonly JsonObject[]): readonly Violation[] {
  const first = items.find(({ role, type }) => role !== "system" && role !== "developer" && type !== "item_reference");
  if (first === undefined || first["role"] === "user") return [];
  return [refuse("Invalid 'input': the first message of the conversation must be from the user.")];
}

function isOutput(item: JsonObject | undefined): boolean {
  if (item === undefined) return false;
  return (
    item["role"] === "assistant" || ["reasoning", "function_call", "custom_tool_call"].includes(stringOf(item["type"]))
  );
}

/** Every tool call has a unique id and one later output, and every output has its call. */
function responsesPairing(items: readonly JsonObject[]): readonly Violation[] {
  const found: Violation[] = [];
  /** By id, whether the call is answered. */
  const calls = new Map<string, boolean>();
  for (const item of items) {
    const id = stringOf(item["call_id"]);
    switch (item["type"]) {
      case "function_call":
      case "custom_tool_call":
        if (calls.has(id)) found.push(refuse(`Duplicate 'call_id': ${id}`));
        else calls.set(id, false);
        break;
      case "function_call_output":
      case "custom_tool_call_output":
        found.push(...answered(calls, id));
        break;
    }
  }
  for (const [id, isAnswered] of calls) {
    if (!isAnswered) found.push(refuse(`No tool output found for function call ${id}.`));
  }
  return found;
}

function answered(calls: Map<string, boolean>, id: string): readonly Violation[] {
  const isAnswered = calls.get(id);
  if (isAnswered === undefined) return [refuse(`No tool call found for function call output with call_id ${id}.`)];
  calls.set(id, true);
  if (!isAnswered) return [];
  const expected = "Each function_call must have exactly one matching function_call_output";
  return [refuse(`Duplicate function_call_output for call_id '${id}'. ${expected}.`)];
}
