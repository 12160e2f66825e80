import { hash } from "node:crypto";
import { isRecord } from "../../protocol/objects.ts";
import type { PiEvent } from "../pi/records.ts";

type Json = Readonly<Record<string, unknown>>;

/** Enough entries to find a log's position in a session file. */
export const enough = 64;
const maxKnown = 512;
/** A text longer than this, in UTF-16 units, is identified by its length and its ends. */
const longText = 512;

/**
 * The entries of pi that the newest part of a log contains. pi reports a message without its entry's id, so messages
 * are identified by content: a `message_end` contains the same message as the entry (measured on both versions).
 */
export class KnownEntries {
  /** Oldest first. */
  readonly #noted: Noted[] = [];

  /** Whether enough events were noted to find the log's position in a file. */
  get isEnough(): boolean {
    return this.#noted.length >= enough;
  }

  /** Notes an event of the log. */
  note(event: PiEvent): void {
    const { type, message, entry } = event;
    if (type === "message_end" && isRecord(message)) this.#add(messageKey(message), isAlike(message));
    if ((type === "entry_appended" || type === "rpcd_entry") && isRecord(entry)) this.#add(idKey(entry), false);
  }

  /**
   * The index of the newest entry in the log; -1 if there is none. Identical custom messages are possible, so they
   * are counted after the newest unique entry.
   */
  placeIn(entries: readonly Json[]): number {
    const places = new Map(this.#noted.flatMap(({ key, isAlike: alike }, i) => (alike ? [] : [[key, i] as const])));
    const placeOf = (entry: Json): number | undefined => places.get(idKey(entry)) ?? places.get(entryKey(entry) ?? "");
    const anchor = entries.findLastIndex((entry) => placeOf(entry) !== undefined);
    const from = anchor === -1 ? 0 : (placeOf(entries[anchor] as Json) ?? 0) + 1;
    const counts = new Map<string, number>();
    for (const { key, isAlike: alike } of this.#noted.slice(from))
      if (alike) counts.set(key, (counts.get(key) ?? 0) + 1);
    let place = anchor;
    for (let i = anchor + 1; i < entries.length; i += 1) {
      const key = entryKey(entries[i] as Json) ?? "";
      const left = counts.get(key) ?? 0;
      if (left === 0) continue;
      counts.set(key, left - 1);
      place = i;
    }
    return place;
  }

  #add(key: string, isAlike: boolean): void {
    this.#noted.push({ key, isAlike });
    if (this.#noted.length > maxKnown) this.#noted.shift();
  }
}

interface Noted {
  readonly key: string;
  /** Whether another entry can have the same key. */
  readonly isAlike: boolean;
}

function isAlike({ role }: Json): boolean {
  return role === "custom";
}

function idKey({ id }: Json): string {
  return `id ${String(id)}`;
}

function entryKey({ type, message, customType, content, details }: Json): string | undefined {
  if (type === "message" && isRecord(message)) return messageKey(message);
  if (type === "custom_message") return messageKey({ role: "custom", customType, content, details });
  return undefined;
}

function messageKey({ role, content, timestamp, toolCallId, customType, details }: Json): string {
  // The time of a custom message may differ from its entry's.
  if (role === "custom") return hash("sha1", JSON.stringify([role, customType, content, details]), "base64");
  // Two messages of the same millisecond do not differ only in the middle of a long text.
  const known = typeof timestamp === "number" ? outlineOf(content) : content;
  return hash("sha1", JSON.stringify([role, timestamp, toolCallId, known]), "base64");
}

/** A message's content, with each long text reduced to its length and its ends. */
function outlineOf(content: unknown): unknown {
  if (typeof content === "string") return outlineOfText(content);
  if (!Array.isArray(content)) return content;
  return content.map((block: unknown) => {
    if (!isRecord(block)) return block;
    return Object.entries(block).map(([key, value]) => [key, typeof value === "string" ? outlineOfText(value) : value]);
  });
}

function outlineOfText(text: string): string {
  if (text.length <= longText) return text;
  const end = longText >> 1;
  return `${text.length} ${text.slice(0, end)} ${text.slice(-end)}`;
}
