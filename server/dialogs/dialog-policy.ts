import type { DialogPolicy } from "../../protocol/dialog.ts";

/** Bounds of how long a dialog is open, in milliseconds. */
export interface DialogTimes {
  /** A dialog is ended so long before pi would do so by itself: an answer behind that would reach nobody. */
  readonly beforePiTimeoutMs: number;
  /** The longest that any is open. */
  readonly maxDialogMs: number;
  /** Under `cancel`: how long the last one who can answer may be away from a dialog that was shown. */
  readonly maxAwayMs: number;
  /** How long only its owner may answer, where the owner can. */
  readonly dialogDelayMs: number;
}

/** How long only its owner may answer a dialog that stays open for `openMs`: others need time to answer, too. */
export function reservedFor(openMs: number, { dialogDelayMs }: DialogTimes): number {
  return Math.min(dialogDelayMs, Math.floor(openMs / 3));
}

/**
 * Why `cancel`: whoever does not say `dialogs: true` is mostly a script, which nobody watches. A run that waits for nobody
 * keeps a pi, its tools and all that wait for them; one whose question is dismissed goes on as extensions expect of a
 * user who presses Escape, and `dialog/resolved` says why.
 */
export const defaultPolicy: DialogPolicy = { kind: "cancel" };

/** How long a dialog may stay open in all, and whose that time is. */
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

/** How long a dialog may be open while nobody is there who can answer; undefined: that is no reason to end it. */
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
