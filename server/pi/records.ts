/** A command to pi, without its id. */
export interface PiCommand {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** pi's answer to a command. */
export interface PiResponse {
  readonly type: "response";
  readonly id?: string;
  readonly command: string;
  readonly success: boolean;
  readonly data?: unknown;
  readonly error?: string;
}

/** An event that pi reports. */
export interface PiEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

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

/**
 * Whether a record is a high-rate one, from its first bytes and its last. Creates no string, because it runs for each
 * record.
 */
export function isHighRate(record: Buffer): boolean {
  return record[record.length - 1] === 0x7d && highRateHeads.some((head) => beginsWith(record, head));
}

/** Like {@link isHighRate}, for the other records that need not be parsed. */
export function isUnread(record: Buffer): boolean {
  return record[record.length - 1] === 0x7d && unreadHeads.some((head) => beginsWith(record, head));
}

function beginsWith(record: Buffer, head: Buffer): boolean {
  for (let i = 0; i < head.length; i += 1) if (record[i] !== head[i]) return false;
  return true;
}

/**
 * Required fields of pi's commands. Without one pi throws inside (its answer has a raw TypeError, measured), so the
 * daemon checks first.
 */
export const requiredFields: ReadonlyMap<string, Readonly<Record<string, "string" | "boolean">>> = new Map([
  ["set_model", { provider: "string", modelId: "string" }],
  ["set_thinking_level", { level: "string" }],
  ["set_steering_mode", { mode: "string" }],
  ["set_follow_up_mode", { mode: "string" }],
  ["set_auto_compaction", { enabled: "boolean" }],
  ["set_auto_retry", { enabled: "boolean" }],
  ["bash", { command: "string" }],
  ["set_session_name", { name: "string" }],
]);

/** Commands after which pi reports another model or thinking level. */
export const changesState: ReadonlySet<string> = new Set([
  "set_model",
  "cycle_model",
  "set_thinking_level",
  "cycle_thinking_level",
]);

/** The only documented values. pi accepts others, too, and keeps them (measured on both versions). */
export const knownValues: ReadonlyMap<string, { readonly field: string; readonly values: readonly string[] }> = new Map(
  [
    ["set_thinking_level", { field: "level", values: ["off", "minimal", "low", "medium", "high", "xhigh", "max"] }],
    ["set_steering_mode", { field: "mode", values: ["all", "one-at-a-time"] }],
    ["set_follow_up_mode", { field: "mode", values: ["all", "one-at-a-time"] }],
  ],
);
