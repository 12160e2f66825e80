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
