import type { PiCommand, PiEvent } from "../pi/records.ts";

const dialogMethods: ReadonlySet<unknown> = new Set(["select", "confirm", "input", "editor"]);

/**
 * Questions of extensions. No client can answer one yet, so each is cancelled at once: the extension goes on with its
 * own default, and a run (or an abort, which would wait for the answer) never hangs on it.
 */
export function cancellation(event: PiEvent): PiCommand | undefined {
  if (event.type !== "extension_ui_request" || !dialogMethods.has(event["method"])) return undefined;
  if (typeof event["id"] !== "string") return undefined;
  return { type: "extension_ui_response", id: event["id"], cancelled: true };
}
