import type { Violation } from "../dialect.ts";
import { type JsonObject, stringOf } from "../json.ts";
import { refuse } from "./rules.ts";

/** Every tool call has a unique id and one later output, and every output has its call. */
export function responsesPairing(items: readonly JsonObject[]): readonly Violation[] {
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
