import type { DialogPolicy } from "../../protocol/dialog.ts";

/** Limits on how long a dialog is open, in milliseconds. */
export interface DialogTimes {
  /** A dialog ends this long before pi would end it by itself, because pi ignores later answers. */
  readonly beforePiTimeoutMs: number;
  /** The longest time that a dialog is open. */
  readonly maxDialogMs: number;
  /** With `cancel`: how long the last client that can answer may be disconnected after the dialog was shown. */
  readonly maxAwayMs: number;
  /** How long only its owner may answer, if the owner is able to. */
  readonly dialogDelayMs: number;
}

/**
 * How long only its owner may answer a dialog that stays open for `openMs`: other clients need time to answer, too.
 */
export function reservedFor(openMs: number, { dialogDelayMs }: DialogTimes): number {
  return Math.min(dialogDelayMs, Math.floor(openMs / 3));
}

/**
 * Reason for `cancel`: a client without `dialogs: true` is usually an unattended script. A run that waits without end
 * occupies a pi and its tools; a run whose question is dismissed continues as after Escape, and `dialog/resolved` has
 * the reason.
 */
export const defaultPolicy: DialogPolicy = { kind: "cancel" };

/** How long a dialog may stay open, and whose limit that is. */
export function openFor(
  policy: DialogPolicy,
  timeoutMs: number | undefined,
  times: DialogTimes,
): { readonly ms: number; readonly by: "pi" | "deadline" } {
  const ours = Math.min(
    times.maxDialogMs,
    policy.kind === "wait" ? (policy.deadlineMs ?? times.maxDialogMs) : Number.POSITIVE_INFINITY,
  );
  const pis = timeoutMs === undefined ? Number.POSITIVE_INFINITY : timeoutMs - times.beforePiTimeoutMs;
  return pis <= ours ? { ms: pis, by: "pi" } : { ms: ours, by: "deadline" };
}

/** How long a dialog may be open without a client that can answer; undefined: without limit. */
export function unattendedFor(
  policy: DialogPolicy,
  why: "opened" | "left",
  { maxAwayMs }: DialogTimes,
): number | undefined {
  switch (policy.kind) {
    case "cancel":
      return why === "opened" ? 0 : maxAwayMs;
    case "default":
      return policy.afterMs;
    case "wait":
      return undefined;
  }
}
