import { randomUUID } from "node:crypto";

/** A command of a front end, as it came: any JSON value. */
export type GivenCommand = Readonly<Record<string, unknown>>;

/** pi's response to a command, in pi's own order of the fields. `data` is left out if it is undefined. */
export function success(id: unknown, command: unknown, data?: unknown): string {
  return JSON.stringify({ id, type: "response", command, success: true, data });
}

/** pi's response to a command that failed. */
export function failure(id: unknown, command: unknown, error: string): string {
  return JSON.stringify({ id, type: "response", command, success: false, error });
}

/** pi's response to a line that is not JSON. */
export function unreadable(cause: unknown): string {
  const why = cause instanceof Error ? cause.message : String(cause);
  return failure(undefined, "parse", `Failed to parse command: ${why}`);
}

const eventKey = '"event":';

/** The bytes of pi's record in the frame of a `session/event`. The fields before it cannot contain the key. */
export function recordIn(frame: string): string {
  return frame.slice(frame.indexOf(eventKey) + eventKey.length, -2);
}

/** Tells a front end something, as extensions do. */
export function noticeOf(message: string, notifyType: "warning" | "error"): string {
  return JSON.stringify({ type: "extension_ui_request", id: randomUUID(), method: "notify", message, notifyType });
}
