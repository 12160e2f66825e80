import type { PiRecord } from "./records.ts";
import type { World } from "./world.ts";

// What may differ between two runs of the same program: random ids, times, directories, the port of the provider, the
// usage in deltas, and how many records a text or an output is split into.

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const providersId = /(?:chatcmpl-|msg_)[0-9a-f]{8}_\d+/g;
const isoTime = /\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d(?:[.-]\d{3})?Z/g;
const outputFile = /pi-bash-[0-9a-f]+\.log/g;
const entryId = /^[0-9a-f]{8}$/;

/** Fields with ids of entries of the session. */
const entryIdFields = new Set(["id", "parentId", "entryId", "leafId", "targetId", "fromId", "firstKeptEntryId"]);

const timeFields = new Set(["timestamp", "durationMs", "wall_time_seconds"]);

type Plain = Readonly<Record<string, unknown>>;

/** Replaces what is different in each run by names that are given by first appearance. */
export class Normaliser {
  readonly #ids = new Map<string, string>();
  readonly #paths: readonly (readonly [text: string, name: string])[];

  constructor({ root, agentDir, provider }: World) {
    const withoutSlashes = (path: string): string => path.slice(1).replaceAll("/", "-");
    this.#paths = [
      [agentDir.path, "<agent>"],
      [root, "<root>"],
      [withoutSlashes(agentDir.path), "<agent>"],
      [withoutSlashes(root), "<root>"],
      [provider.url, "<provider>"],
    ];
  }

  /** The records as they are compared. */
  records(records: readonly PiRecord[]): readonly PiRecord[] {
    return merge(records).map((record) => this.#record(record));
  }

  text(text: string): string {
    let replaced = text;
    for (const [path, name] of this.#paths) replaced = replaced.replaceAll(path, name);
    return replaced
      .replace(uuid, (id) => this.#id(id))
      .replace(providersId, (id) => this.#id(id))
      .replace(isoTime, "<time>")
      .replace(outputFile, "pi-bash-<id>.log");
  }

  #record(record: PiRecord): PiRecord {
    if (record.type === "message_start" && record.message?.stopReason === "pending") {
      // How much of the answer is already in it depends on how fast pi reads.
      const { responseId: _, content: _content, usage: _usage, ...message } = record.message as Plain;
      return this.#object({ ...record, message });
    }
    // Ids of commands are the front end's own: they are compared.
    const isOfCommand = record.type === "response" || record.type === "bash_execution_update";
    if (!isOfCommand) return this.#object(record);
    const { id, ...rest } = record;
    return { ...("id" in record && { id }), ...this.#object(rest) };
  }

  #object(object: Plain): Plain {
    const compared = Object.entries(object).filter(([key]) => key !== "durationMs" || !isUnbegun(object));
    return Object.fromEntries(compared.map(([key, value]) => [key, this.#field(key, value)]));
  }

  #field(key: string, value: unknown): unknown {
    if (typeof value === "string")
      return entryIdFields.has(key) && entryId.test(value) ? this.#id(value) : this.text(value);
    if (typeof value === "number") return timeFields.has(key) ? "<time>" : value;
    if (Array.isArray(value)) return value.map((item) => this.#field(key, item));
    return typeof value === "object" && value !== null ? this.#object(value as Plain) : value;
  }

  #id(id: string): string {
    const name = this.#ids.get(id) ?? `<id ${this.#ids.size + 1}>`;
    this.#ids.set(id, name);
    return name;
  }
}

/**
 * Whether it is an answer that was aborted before its first piece. pi times an answer only if its time stamp is not before
 * its stream, and this one can be a millisecond older.
 */
function isUnbegun({ stopReason, content }: Plain): boolean {
  return stopReason === "aborted" && Array.isArray(content) && content.length === 0;
}

/** Joins the deltas of a block and the parts of an output, and keeps the last of a tool's updates. */
export function merge(records: readonly PiRecord[]): readonly PiRecord[] {
  const merged: PiRecord[] = [];
  for (const record of records) {
    const joined = join(merged.at(-1), record);
    if (joined !== undefined) merged.pop();
    merged.push(joined ?? withoutUsage(record));
  }
  return merged;
}

/** One record for two that follow each other; undefined if both are needed. */
function join(before: PiRecord | undefined, record: PiRecord): PiRecord | undefined {
  if (before?.type !== record.type) return undefined;
  switch (record.type) {
    case "message_update": {
      const [first, second] = [before?.assistantMessageEvent, record.assistantMessageEvent];
      const isSame = first?.type === second?.type && first?.contentIndex === second?.contentIndex;
      if (!isSame || second?.delta === undefined) return undefined;
      const assistantMessageEvent = { ...second, delta: `${first?.delta}${second.delta}` };
      return withoutUsage({ ...record, assistantMessageEvent });
    }
    case "bash_execution_update":
      if (JSON.stringify(before?.id) !== JSON.stringify(record.id)) return undefined;
      return { ...record, delta: `${before?.["delta"]}${record["delta"]}` };
    case "tool_execution_update":
      return before?.["toolCallId"] === record["toolCallId"] ? record : undefined;
    default:
      return undefined;
  }
}

function withoutUsage(record: PiRecord): PiRecord {
  if (record.type !== "message_update") return record;
  const { usage: _, ...rest } = record;
  return rest;
}
