import type { StrictRules, Violation } from "../dialect.ts";
import { isObject, type JsonObject, objectsOf } from "../json.ts";

/** The characters that all providers accept in tool names and call ids. */
export const identifierPattern: RegExp = /^[a-zA-Z0-9_-]{1,64}$/;

const maxCacheMarks = 4;

export function refuse(message: string): Violation {
  return { message, status: 400 };
}

/** OpenAI's words, for both of its APIs. */
export function openaiModel(name: unknown, rules: StrictRules): readonly Violation[] {
  if (typeof name !== "string" || name === "") return [refuse("you must provide a model parameter")];
  if (rules.models?.includes(name) !== false) return [];
  return [{ message: `The model \`${name}\` does not exist or you do not have access to it.`, status: 404 }];
}

export function isIdentifier(value: unknown): value is string {
  return typeof value === "string" && identifierPattern.test(value);
}

export function repeated(values: readonly string[]): readonly string[] {
  return [...new Set(values.filter((value, index) => values.indexOf(value) !== index))];
}

/** Messages have blocks, and tool results among these have blocks; deeper levels are data. */
const contentLevels = 3;

/** Refuses a request with too many cache marks, counted over messages, blocks and tools. */
export function tooManyCacheMarks(marked: readonly JsonObject[]): readonly Violation[] {
  const count = countCacheMarks(marked, contentLevels);
  if (count <= maxCacheMarks) return [];
  return [refuse(`A maximum of ${maxCacheMarks} blocks with cache_control may be provided. Found ${count}.`)];
}

function countCacheMarks(blocks: readonly JsonObject[], levels: number): number {
  if (levels === 0) return 0;
  let count = 0;
  for (const block of blocks) {
    if (isObject(block["cache_control"])) count += 1;
    count += countCacheMarks(objectsOf(block["content"]), levels - 1);
  }
  return count;
}
