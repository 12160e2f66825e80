import { isUtf8 } from "node:buffer";
import { isRecord } from "../../protocol/objects.ts";
import type { PiEvent, PiResponse } from "./records.ts";
import { isOneObject, parseBounded } from "./structure.ts";

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
   * parsed form, absent for high-rate records (`isDelta`) and for those of which no field is needed.
   */
  readonly event: (record: Buffer, event: PiEvent | undefined, isDelta: boolean) => void;
  readonly diagnostic: (diagnostic: RecordDiagnostic) => void;
}

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
    let value: unknown;
    try {
      value = parseBounded(record);
    } catch {
      this.#report("unparsable", record);
      this.#sinks.unread(record.toString("utf8", 0, excerptBytes));
      return;
    }
    if (!isRecord(value)) {
      this.#report("not_an_object", record);
      return;
    }
    this.#dispatch(record, value);
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

/**
 * Whether a record is a high-rate one, from its first bytes and its last. Creates no string, because it runs for each
 * record.
 */
function isHighRate(record: Buffer): boolean {
  return record[record.length - 1] === 0x7d && highRateHeads.some((head) => beginsWith(record, head));
}

/** Like {@link isHighRate}, for the other records that need not be parsed. */
function isUnread(record: Buffer): boolean {
  return record[record.length - 1] === 0x7d && unreadHeads.some((head) => beginsWith(record, head));
}

function beginsWith(record: Buffer, head: Buffer): boolean {
  for (let i = 0; i < head.length; i += 1) if (record[i] !== head[i]) return false;
  return true;
}
