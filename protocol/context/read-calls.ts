import type { ContextArguments, ContextCall } from "./document.ts";
import { contextInvalid, contextTooLarge } from "./faults.ts";
import { isDeeperThan, isObject, type Loose } from "./measure.ts";
import { inSentence, type Place } from "./read-parts.ts";

/** How the arguments of a call may be named, the first that is there counts. */
export const argumentNames = ["arguments", "toolParams", "params", "input"] as const;

/** The first of some fields that has a value, and which it is. */
export function firstOf(raw: Loose, names: readonly string[]): { readonly field: string; readonly value: unknown } {
  const field = names.find((name) => Object.hasOwn(raw, name) && raw[name] !== undefined);
  return { field: field ?? (names[0] as string), value: field === undefined ? undefined : raw[field] };
}

/** The arguments of a call: an object. None at all is an empty one. */
export function readArguments(value: unknown, place: Place): ContextArguments {
  const { name, nodeId, limits } = place;
  if (value === undefined) return {};
  if (!isObject(value)) {
    throw contextInvalid("bad_arguments", `${name} has a call whose arguments are no object.`, nodeId);
  }
  const limit = limits.maxArgumentDepth;
  if (isDeeperThan(value, limit)) {
    const what = `The arguments of a call of ${inSentence(name)}`;
    throw contextTooLarge({ what: `${what}, which`, unit: "levels or more", count: limit + 1, limit, nodeId });
  }
  return value;
}

export function checkCallCount(count: number, { name, nodeId, limits }: Pick<Place, "name" | "nodeId" | "limits">) {
  const limit = limits.maxToolCalls;
  if (count > limit) throw contextTooLarge({ what: name, unit: "tool calls", count, limit, nodeId });
}

/** The calls of an assistant. A call without an id or a name has an empty one, for the repairs to find. */
export function readCalls(value: unknown, place: Place): readonly ContextCall[] | undefined {
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) {
    place.findings.add(place.path, "an array of tool calls", value);
    return undefined;
  }
  checkCallCount(value.length, place);
  const calls: ContextCall[] = [];
  for (let index = 0; index < value.length; index += 1) {
    const call = readCall(value[index], { ...place, path: [...place.path, index] });
    if (call !== undefined) calls.push(call);
  }
  return calls;
}

function readCall(raw: unknown, place: Place): ContextCall | undefined {
  if (!isObject(raw)) {
    place.findings.add(place.path, "a tool call", raw);
    return undefined;
  }
  const id = readName(raw, ["id", "toolCallId"], place);
  const name = readName(raw, ["name", "toolName"], place);
  return { id, name, arguments: readArguments(firstOf(raw, argumentNames).value, place) };
}

function readName(raw: Loose, names: readonly string[], place: Place): string {
  const { field, value } = firstOf(raw, names);
  if (typeof value === "string") return value;
  if (value !== undefined && value !== null) place.findings.add([...place.path, field], "a text", value);
  return "";
}
