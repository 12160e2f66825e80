import { isRecord } from "../../protocol/objects.ts";
import type { ContextArguments, ContextCall } from "./document.ts";
import { contextInvalid } from "./faults.ts";
import { isDeeperThan, type Loose } from "./measure.ts";
import type { Place } from "./place.ts";

/** Accepted field names of a call's arguments, by priority. */
export const argumentNames = ["arguments", "toolParams", "params", "input"] as const;

/** Returns the first field with a value, and its name; `null` counts only if there is no other. */
export function firstOf(raw: Loose, names: readonly string[]): { readonly field: string; readonly value: unknown } {
  const given = names.filter((name) => Object.hasOwn(raw, name) && raw[name] !== undefined);
  const field = given.find((name) => raw[name] !== null) ?? given[0];
  return { field: field ?? (names[0] as string), value: field === undefined ? undefined : raw[field] };
}

/** Reads the arguments of a call: an object, by default empty. */
export function readArguments(value: unknown, place: Place): ContextArguments {
  if (value === undefined) return {};
  if (!isRecord(value)) {
    const words = `${place.name} has a call whose arguments are not an object.`;
    throw contextInvalid("bad_arguments", words, place.nodeId);
  }
  const limit = place.limits.maxArgumentDepth;
  if (isDeeperThan(value, limit)) {
    throw place.exceeded("A call of", { unit: "levels of arguments, or more", count: limit + 1, limit });
  }
  return value;
}

/** Checks the number of an assistant's calls. */
export function checkCallCount(count: number, place: Place): void {
  const limit = place.limits.maxToolCalls;
  if (count > limit) throw place.exceeded("", { unit: "tool calls", count, limit });
}

/** Reads an assistant's calls. A missing id or name becomes empty, for the repairs. */
export function readCalls(value: unknown, place: Place): readonly ContextCall[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) {
    place.misfit("an array of tool calls", value);
    return undefined;
  }
  checkCallCount(value.length, place);
  const calls: ContextCall[] = [];
  for (let index = 0; index < value.length; index += 1) {
    const call = readCall(value[index], place.at(index));
    if (call !== undefined) calls.push(call);
  }
  return calls;
}

function readCall(raw: unknown, place: Place): ContextCall | undefined {
  if (!isRecord(raw)) {
    place.misfit("a tool call", raw);
    return undefined;
  }
  const id = readName(raw, ["id", "toolCallId"], place);
  const inner = raw["function"];
  if (isRecord(inner)) {
    const given = inner["arguments"];
    return {
      id,
      name: readName(inner, ["name"], place.at("function")),
      arguments: readArguments(asJson(given), place),
    };
  }
  const name = readName(raw, ["name", "toolName"], place);
  return { id, name, arguments: readArguments(firstOf(raw, argumentNames).value, place) };
}

/** Parses a text as JSON; returns the text itself if it is not valid JSON, `undefined` if it is empty. */
function asJson(value: unknown): unknown {
  if (typeof value !== "string") return value;
  if (value === "") return undefined;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function readName(raw: Loose, names: readonly string[], place: Place): string {
  const { field, value } = firstOf(raw, names);
  if (typeof value === "string") return value;
  if (value !== undefined && value !== null) place.misfit("a text", value, field);
  return "";
}
