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

/** Something pi reports by itself. */
export interface PiEvent {
  readonly type: string;
  readonly [field: string]: unknown;
}

/**
 * How records begin that come in great numbers. They are passed on as the bytes that pi wrote, without being parsed;
 * pi writes `type` first in each of them.
 */
const highRateHeads = ["message_update", "tool_execution_update", "bash_execution_update"].map((type) =>
  Buffer.from(`{"type":"${type}"`, "latin1"),
);

/** Whether a record is of the high-rate kind, from its first bytes and its last. Makes no string: it runs for each record. */
export function isHighRate(record: Buffer): boolean {
  return record[record.length - 1] === 0x7d && highRateHeads.some((head) => beginsWith(record, head));
}

function beginsWith(record: Buffer, head: Buffer): boolean {
  for (let i = 0; i < head.length; i += 1) if (record[i] !== head[i]) return false;
  return true;
}

export function isRecordObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The commands that rewrite the user's shared settings file, and what they change there (measured on both versions). */
export const sharedSettingsCommands: ReadonlyMap<string, string> = new Map([
  ["set_steering_mode", "steeringMode"],
  ["set_follow_up_mode", "followUpMode"],
  ["set_auto_retry", "retry.enabled"],
  ["set_auto_compaction", "compaction.enabled"],
]);

/**
 * The commands that only the daemon sends, with what a client calls instead: their effect on the session's
 * life must not pass it by.
 */
export const daemonOnlyCommands: ReadonlyMap<string, string> = new Map([
  ["prompt", "session/prompt"],
  ["steer", "session/steer"],
  ["follow_up", "session/followUp"],
  ["abort", "session/abort"],
  ["clear_queue", "session/clearQueue"],
  ["new_session", "session/create"],
  ["switch_session", "session/open"],
  ["fork", "session/fork"],
  ["clone", "session/clone"],
  ["extension_ui_response", "no method yet"],
]);

/**
 * The fields that pi's commands need. Without one pi throws inside (a raw TypeError in its answer, measured), so the
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
