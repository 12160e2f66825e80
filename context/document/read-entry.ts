import type { Meta } from "../../protocol/link-context.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { ContextItem, ContextNode, ModelName } from "./document.ts";
import { contextInvalid } from "./faults.ts";
import { type Loose, setField } from "./measure.ts";
import type { Place } from "./place.ts";
import { argumentNames, checkCallCount, firstOf, readArguments, readCalls } from "./read-calls.ts";
import { type ReadParts, readParts } from "./read-parts.ts";

export type EntryRole = ContextNode["role"];

const roles = ["system", "user", "assistant", "toolCall", "toolResult", "event"] as const;
const roleNames: ReadonlyMap<unknown, EntryRole> = new Map<unknown, EntryRole>([
  ...roles.map((role) => [role, role] as const),
  ["tool_call", "toolCall"],
  ["tool_result", "toolResult"],
  ["tool", "toolResult"],
]);

export interface EntryFlaws {
  readonly wrongContent: boolean;
  readonly badTimestamp: boolean;
}

/** Fields common to nodes and items, without ids. */
export interface ReadEntry {
  readonly fields: Omit<ContextItem, "role"> & Pick<ContextNode, "arguments">;
  readonly role: EntryRole;
  readonly flaws: EntryFlaws;
}

/** Maximum distance of a date from 1970, in milliseconds. */
const farthestTime = 8.64e15;

export function isTime(value: unknown): value is number {
  return typeof value === "number" && Math.abs(value) <= farthestTime;
}

/** Time of an entry without one: 1 ms after the previous entry. */
export function timeAfter(previous: number): number {
  return Math.min(previous + 1, farthestTime);
}

/**
 * Reads an entry's fields except `ownFields`, which the caller reads. Fields unknown for the role go to `meta`; `null`
 * counts as absent.
 */
export function readEntry(raw: Loose, place: Place, ownFields: readonly string[], previous: number): ReadEntry {
  const role = readRole(raw, place);
  const reader = new FieldReader(raw, place, ownFields);
  const content = readContent(role, reader);
  const timestamp = reader.take("timestamp");
  const badTimestamp = !isTime(timestamp);
  const meta = reader.object("meta");
  const known = {
    timestamp: badTimestamp ? timeAfter(previous) : timestamp,
    content: content.parts,
    ...optional("eventType", reader.text("eventType")),
    ...optional("model", readModel(reader)),
    ...optional("stopReason", reader.text("stopReason")),
    ...optional("usage", reader.object("usage")),
    ...optional("details", reader.take("details") ?? undefined),
    ...(role === "assistant" ? readAssistant(reader) : {}),
    ...(role === "toolCall" || role === "toolResult" ? readTool(role, reader) : {}),
  };
  const all = withRest(meta, reader.rest());
  return {
    fields: { ...known, ...optional("meta", all) },
    role,
    flaws: { wrongContent: content.isRepaired, badTimestamp },
  };
}

function readRole(raw: Loose, place: Place): EntryRole {
  const role = roleNames.get(raw["role"]);
  if (role === undefined) place.unknownRole(roles.join(", "), raw["role"]);
  return role ?? "event";
}

function readContent(role: EntryRole, reader: FieldReader): ReadParts {
  const names = role === "toolResult" ? ["result", "output", "content"] : ["content"];
  const given = names.filter((name) => reader.has(name));
  const name = given.find((one) => reader.peek(one) !== null) ?? given[0] ?? "content";
  for (const one of given) reader.take(one);
  return readParts(reader.raw[name], reader.at(name));
}

function readAssistant(reader: FieldReader): Pick<ContextItem, "toolCalls" | "blocks"> {
  // Spelling of chat completions, which put each call's name and JSON arguments in `function`.
  const { field, value: given } = firstOf(reader.raw, [
    "toolCalls",
    ...(Array.isArray(reader.peek("tool_calls")) ? ["tool_calls"] : []),
  ]);
  reader.take(field);
  const calls = given === undefined ? undefined : readCalls(given, reader.at(field));
  return {
    ...optional("toolCalls", calls?.length === 0 ? undefined : calls),
    ...optional("blocks", readBlocks(reader)),
  };
}

function readBlocks(reader: FieldReader): readonly Meta[] | undefined {
  const blocks = reader.take("blocks");
  if (blocks === undefined || blocks === null) return undefined;
  const place = reader.at("blocks");
  if (!Array.isArray(blocks) || !blocks.every(isRecord)) {
    place.misfit("an array of objects", blocks);
    return undefined;
  }
  const calls = blocks.filter((block) => block["type"] === "toolCall");
  checkCallCount(calls.length, place);
  for (const call of calls) readArguments(call["arguments"], place);
  return blocks;
}

function readTool(role: "toolCall" | "toolResult", reader: FieldReader): Partial<ReadEntry["fields"]> {
  const toolName = reader.text("toolName", "name");
  const shared = {
    ...optional("toolCallId", reader.text("toolCallId", "tool_call_id")),
    ...optional("toolName", toolName),
  };
  if (role === "toolResult") return { ...shared, ...optional("isError", reader.flag("isError")) };
  const { field, value } = firstOf(reader.raw, argumentNames);
  for (const name of argumentNames) if (name === field || reader.peek(name) === null) reader.take(name);
  return { ...shared, arguments: readArguments(value, reader.at(field)) };
}

function readModel(reader: FieldReader): ModelName | undefined {
  const model = reader.object("model");
  if (model === undefined) return undefined;
  const { api, provider, id } = model;
  if (typeof api === "string" && typeof provider === "string" && typeof id === "string") return { api, provider, id };
  const field = (["api", "provider", "id"] as const).find((name) => typeof model[name] !== "string") ?? "id";
  reader.at("model").misfit("a text", model[field], field);
  return undefined;
}

function withRest(meta: Meta | undefined, rest: Meta | undefined): Meta | undefined {
  if (rest === undefined || meta === undefined) return meta ?? rest;
  // A field inside `meta` overrides a field of the same name next to it.
  const all: Record<string, unknown> = {};
  for (const one of [rest, meta]) for (const key of Object.keys(one)) setField(all, key, one[key]);
  return all;
}

function optional<Name extends string, T>(name: Name, value: T | undefined): Partial<Record<Name, T>> {
  return value === undefined ? {} : ({ [name]: value } as Record<Name, T>);
}

/** Reads fields of an entry one by one; unread fields are the rest. */
class FieldReader {
  readonly raw: Loose;
  readonly #place: Place;
  readonly #taken: string[];

  constructor(raw: Loose, place: Place, ownFields: readonly string[]) {
    this.raw = raw;
    this.#place = place;
    this.#taken = [...ownFields, "role"];
  }

  has(name: string): boolean {
    return Object.hasOwn(this.raw, name) && this.raw[name] !== undefined;
  }

  peek(name: string): unknown {
    return Object.hasOwn(this.raw, name) ? this.raw[name] : undefined;
  }

  take(name: string): unknown {
    this.#taken.push(name);
    return this.peek(name);
  }

  at(name: string): Place {
    return this.#place.at(name);
  }

  /** Returns the first named field with a value; `null` counts as absent. */
  text(...names: readonly string[]): string | undefined {
    const { field: name, value } = firstOf(this.raw, names);
    for (const one of names) if (one === name || this.peek(one) === null) this.take(one);
    if (value === undefined || value === null || typeof value === "string") return value ?? undefined;
    this.#misfit(name, "a text", value);
    return undefined;
  }

  flag(name: string): boolean | undefined {
    const value = this.take(name);
    if (value === undefined || value === null || typeof value === "boolean") return value ?? undefined;
    this.#misfit(name, "true or false", value);
    return undefined;
  }

  object(name: string): Loose | undefined {
    const value = this.take(name);
    if (value === undefined || value === null) return undefined;
    if (isRecord(value)) return value;
    this.#misfit(name, "an object", value);
    return undefined;
  }

  rest(): Meta | undefined {
    let rest: Record<string, unknown> | undefined;
    for (const key of Object.keys(this.raw)) {
      if (this.#taken.includes(key) || this.raw[key] === undefined) continue;
      rest ??= {};
      setField(rest, key, this.raw[key]);
    }
    return rest;
  }

  #misfit(name: string, expected: string, value: unknown): void {
    this.#place.misfit(expected, value, name);
  }
}

/** Returns the error of an item that is a single call, which only trees can have. */
export function callAsItem(name: string, nodeId: string | undefined): Error {
  const words = `${name} has the role "toolCall", which is for nodes: an item has its calls in "toolCalls".`;
  return contextInvalid("unknown_role", words, nodeId);
}
