import { isUtf8 } from "node:buffer";
import { isRecord } from "../../protocol/objects.ts";
import { largeRecord } from "../frames/large-record.ts";
import { Slices } from "../lib/slices.ts";
import type { PiEvent, PiResponse } from "./records.ts";
import { isOneObject, parseBounded, scan, scanState } from "./structure.ts";

/** A record that could not be forwarded unchanged. */
export interface RecordDiagnostic {
  readonly kind: "unparsable" | "not_an_object" | "record_too_large" | "invalid_utf8" | "unknown_response" | "cut_off";
  readonly bytes: number;
  /** The first bytes, as text. */
  readonly excerpt: string;
}

export interface RouterSinks {
  /** A response with an id. Returns whether its command was pending. */
  readonly response: (response: PiResponse) => boolean;
  /** A status text under any key. Returns whether it was a frame of the link, which is not forwarded. */
  readonly status: (key: string, text: string) => boolean;
  /**
   * The first bytes of a record that is not valid JSON, or takes too long to parse: it may have been a pending
   * response.
   */
  readonly unread: (head: string) => void;
  /**
   * Everything else. `record` has pi's own bytes, valid UTF-8 with the structure of one JSON object; `event` is its
   * parsed form, absent for high-rate records (`isDelta`) and for those of which no field is needed; of `agent_end`
   * usually without its messages.
   */
  readonly event: (record: Buffer, event: PiEvent | undefined, isDelta: boolean) => void;
  readonly diagnostic: (diagnostic: RecordDiagnostic) => void;
  /** Called before the `event` of a large record that is neither a delta nor parsed, which waits for it. */
  readonly stage: (record: Buffer) => Promise<void> | undefined;
}

/** Bytes of a large record that are handled in one step. */
const stepBytes = 64 * 1024;

const excerptBytes = 120;

/**
 * The beginnings of high-rate records. They are forwarded as the bytes that pi wrote, without parsing; pi writes
 * `type` first in each of them.
 */
const highRateHeads = ["message_update", "tool_execution_update", "bash_execution_update"].map((type) =>
  Buffer.from(`{"type":"${type}"`, "latin1"),
);

/** The beginnings of records that may be long, and of which the daemon needs no field. */
const unreadHeads = ["message_start", "turn_end", "tool_execution_start", "tool_execution_end"].map((type) =>
  Buffer.from(`{"type":"${type}"`, "latin1"),
);

const runEndHead = Buffer.from('{"type":"agent_end","messages":[', "latin1");
/** The end of `agent_end`, and the only field that is needed of this record, which has all messages of its run. */
const runEnds = [true, false].map((willRetry) => ({
  tail: Buffer.from(`],"willRetry":${willRetry}}`, "latin1"),
  event: { type: "agent_end", willRetry } as PiEvent,
}));

/** Examines each record of pi once and passes it to its receiver. */
export class Router {
  readonly #sinks: RouterSinks;

  constructor(sinks: RouterSinks) {
    this.#sinks = sinks;
  }

  route(bytes: Buffer): void {
    const record = isUtf8(bytes) ? bytes : this.#repaired(bytes);
    const isDelta = isHighRate(record);
    if ((isDelta || isUnread(record)) && isOneObject(record)) {
      this.#sinks.event(record, undefined, isDelta);
      return;
    }
    const runEnd = isDelta ? undefined : runEndOf(record);
    if (runEnd !== undefined && isOneObject(record)) this.#sinks.event(record, runEnd, false);
    else this.#parse(record);
  }

  /**
   * Like {@link route} for a record in parts, in slices. A record of which a field is needed is still parsed at once.
   * Clears the parts.
   */
  async routeLarge(parts: Buffer[], bytes: number): Promise<void> {
    const slices = new Slices();
    let record = await joined(parts, bytes, slices);
    if (!(await isUtf8InSlices(record, slices))) {
      this.#report("invalid_utf8", record);
      record = await repairedInSlices(record, slices);
    }
    const isDelta = isHighRate(record);
    const runEnd = isDelta ? undefined : runEndOf(record);
    if (!isDelta && runEnd === undefined && !isUnread(record)) {
      this.#parse(record);
      return;
    }
    if (!(await isOneObjectInSlices(record, slices))) {
      this.#refuse(record);
      return;
    }
    if (!isDelta) await this.#sinks.stage(record);
    this.#sinks.event(record, runEnd, isDelta);
  }

  #parse(record: Buffer): void {
    let value: unknown;
    try {
      value = parseBounded(record);
    } catch {
      this.#refuse(record);
      return;
    }
    if (!isRecord(value)) {
      this.#report("not_an_object", record);
      return;
    }
    this.#dispatch(record, value);
  }

  #refuse(record: Buffer): void {
    this.#report("unparsable", record);
    this.#sinks.unread(record.toString("utf8", 0, excerptBytes));
  }

  #dispatch(record: Buffer, value: Readonly<Record<string, unknown>>): void {
    const { type } = value;
    if (typeof type !== "string") {
      this.#report("unparsable", record);
      return;
    }
    if (type === "response") {
      if (!this.#sinks.response(value as unknown as PiResponse)) this.#report("unknown_response", record);
      return;
    }
    if (type === "extension_ui_request" && value["method"] === "setStatus") {
      const { statusKey, statusText } = value;
      if (
        typeof statusKey === "string" &&
        typeof statusText === "string" &&
        this.#sinks.status(statusKey, statusText)
      ) {
        return;
      }
    }
    this.#sinks.event(record, value as PiEvent, false);
  }

  /** Invalid UTF-8 would make a conforming WebSocket client close: it is replaced, as pi itself does on its stdin. */
  #repaired(bytes: Buffer): Buffer {
    this.#report("invalid_utf8", bytes);
    return Buffer.from(bytes.toString("utf8"));
  }

  #report(kind: RecordDiagnostic["kind"], record: Buffer): void {
    this.#sinks.diagnostic({ kind, bytes: record.length, excerpt: record.subarray(0, excerptBytes).toString("utf8") });
  }
}

async function joined(parts: Buffer[], bytes: number, slices: Slices): Promise<Buffer> {
  const record = largeRecord(bytes);
  let at = 0;
  for (const part of parts.splice(0)) {
    at += part.copy(record, at);
    await slices.next();
  }
  return record;
}

async function isUtf8InSlices(record: Buffer, slices: Slices): Promise<boolean> {
  for (let start = 0, end = 0; start < record.length; start = end) {
    end = startOfCharacter(record, start + stepBytes);
    if (!isUtf8(record.subarray(start, end))) return false;
    await slices.next();
  }
  return true;
}

/** Like `toString` for the bytes of a record: pieces of the text are decoded one after the other. */
async function repairedInSlices(record: Buffer, slices: Slices): Promise<Buffer> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const parts: Buffer[] = [];
  for (let start = 0; start < record.length; start += stepBytes) {
    const stream = start + stepBytes < record.length;
    parts.push(Buffer.from(decoder.decode(record.subarray(start, start + stepBytes), { stream })));
    await slices.next();
  }
  const bytes = parts.reduce((sum, { length }) => sum + length, 0);
  return await joined(parts, bytes, slices);
}

/** The start of the character at `at`, or the end of the record. */
function startOfCharacter(record: Buffer, at: number): number {
  let start = Math.min(at, record.length);
  for (let i = 0; i < 3 && ((record[start] ?? 0) & 0xc0) === 0x80; i += 1) start -= 1;
  return start;
}

async function isOneObjectInSlices(record: Buffer, slices: Slices): Promise<boolean> {
  const state = scanState();
  for (let limit = stepBytes; ; limit += stepBytes) {
    const isOne = scan(record, state, Math.min(limit, record.length));
    if (isOne !== undefined) return isOne;
    await slices.next();
  }
}

/**
 * Whether a record is a high-rate one, from its first bytes and its last. Creates no string, because it runs for each
 * record.
 */
function isHighRate(record: Buffer): boolean {
  return record[record.length - 1] === 0x7d && beginsWithOne(record, highRateHeads);
}

/** Like {@link isHighRate}, for the other records that need not be parsed. */
function isUnread(record: Buffer): boolean {
  return record[record.length - 1] === 0x7d && beginsWithOne(record, unreadHeads);
}

/** The event of `agent_end` without its messages. Undefined: another record, or another order of its fields. */
function runEndOf(record: Buffer): PiEvent | undefined {
  if (!beginsWith(record, runEndHead)) return undefined;
  return runEnds.find(({ tail }) => record.subarray(-tail.length).equals(tail))?.event;
}

function beginsWithOne(record: Buffer, heads: readonly Buffer[]): boolean {
  for (const head of heads) if (beginsWith(record, head)) return true;
  return false;
}

function beginsWith(record: Buffer, head: Buffer): boolean {
  for (let i = 0; i < head.length; i += 1) if (record[i] !== head[i]) return false;
  return true;
}
