import type { SessionEntry } from "../../../extension/pi-types.ts";
import { isRecord } from "../../../protocol/objects.ts";

/** `customType` of the entries that record reminders. */
export const NUDGE_MARK = "pi-rpcd.nudge";

export const nudgeKinds = ["turn", "iteration", "limit-soft", "limit-strong"] as const;
export type NudgeKind = (typeof nudgeKinds)[number];

/** A reminder in a request. */
export interface Nudge {
  readonly kind: NudgeKind;
  /** The newest entry in the request. */
  readonly at: string;
}

export function nudgeData({ kind, at }: Nudge): object {
  return { v: 1, kind, at };
}

/** Validates the entry, because session files are untrusted. */
export function nudgeIn(entry: SessionEntry): Nudge | undefined {
  if (entry.type !== "custom" || entry.customType !== NUDGE_MARK || !isRecord(entry.data)) return undefined;
  const { v, kind, at } = entry.data;
  const known = nudgeKinds.find((one) => one === kind);
  return v === 1 && known !== undefined && typeof at === "string" ? { kind: known, at } : undefined;
}
