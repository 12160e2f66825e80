import type { ContextArguments, ContextCall } from "./document.ts";
import { contextInvalid } from "./faults.ts";
import { isDeeperThan, isObject, type Loose } from "./measure.ts";
import type { Place } from "./place.ts";

/** How the arguments of a call may be named, the first that is there counts. */
export const argumentNames = ["arguments", "toolParams", "params", "input"] as const;

/** The first of some fields that has a value, and which it is; `null` is one where there is no other. */
export function firstOf(raw: Loose, names: readonly string[]): { readonly field: string; readonly value: unknown } {
  const given = names.filter((name) => Object.hasOwn(raw, name) && raw[name] !== undefined);
  const field = given.find((name) => raw[name] !== null) ?? given[0];
  return { field: field ?? (names[0] as string), value: field === undefined ? undefined : raw[field] };
}

/** The arguments of a call: an object. None at all is an empty one. */
export function readArguments(value: unknown, place: Place): ContextArguments {
  if (value === undefined) return {};
  if (!isObject(value)) {
    const words = `${place.name} has a call whose arguments are no object.`;
    throw contextInvalid("bad_arguments", words, place.nodeId);
  }
  const limit = place.limits.maxArgumentDepth;
  if (isDeeperThan(value, limit)) {
    throw place.exceeded("A call of", { unit: "levels of arguments, or more", count: limit + 1, limit });
  }
  return value;
}

/** Checks how many calls an assistant has. */
export function checkCallCount(count: number, place: Place): void {
  const limit = place.limits.maxToolCalls;
  if (count > limit) throw place.exceeded("", { unit: "tool calls", count, limit });
}

/** The calls of an assistant. A call without an id or a name has an empty one, for the repairs to find. */
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
  if (!isObject(raw)) {
    place.misfit("a tool call", raw);
    return undefined;
  }
  const id = readName(raw, ["id", "toolCallId"], place);
  const inner = raw["function"];
  if (isObject(inner)) {
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

/** What a text stands for; itself where it is no JSON. An empty one is none. */
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
