import type { PruningConfig } from "../../../protocol/pruning/config.ts";
import type { Usage } from "../pruning-services.ts";
import type { NudgeHistory } from "./history.ts";
import type { NudgeKind } from "./record.ts";

/** Ignored soft reminders before a strong one. */
const mostIgnored = 2;

export interface Moment {
  readonly history: NudgeHistory;
  /** Usage of the current request. `undefined`: unknown. */
  readonly usage: Usage | undefined;
  readonly isManual: boolean;
}

/** Returns the reminder for the request, if any. */
export function nudgeFor({ history, usage, isManual }: Moment, config: PruningConfig): NudgeKind | undefined {
  if (usage === undefined || usage.share < usage.min || history.brokenAt !== undefined) return undefined;
  const wait = config.nudgeFrequency * Math.min(2 ** history.failures, config.nudges.backoffMax);
  const sinceReset = history.requests - (history.resetAt ?? Number.NEGATIVE_INFINITY);
  const sinceLast = history.requests - (history.last?.requests ?? Number.NEGATIVE_INFINITY);
  const isRested = sinceReset >= wait;
  /** Whether enough requests have passed since a reminder at least as urgent; after a failure, since any reminder. */
  const isTurnOf = (...kinds: readonly NudgeKind[]): boolean =>
    sinceLast >= wait || (history.failures === 0 && !kinds.some((kind) => kind === history.last?.kind));
  if (usage.share >= usage.max) {
    if (!isRested || !isTurnOf("limit-soft", "limit-strong")) return undefined;
    return config.nudgeForce === "strong" || history.ignored >= mostIgnored ? "limit-strong" : "limit-soft";
  }
  if (isManual || history.isSilenced) return undefined;
  if (isTurnDue(history, config)) return history.failures === 0 || (isRested && sinceLast >= wait) ? "turn" : undefined;
  if (history.results < config.iterationNudgeThreshold || !isRested) return undefined;
  const isFirst = history.failures === 0 && (history.last === undefined || history.last.users < history.users);
  return isFirst || isTurnOf("iteration", "limit-soft", "limit-strong") ? "iteration" : undefined;
}

/**
 * Whether this is the first request after a user's message, and enough messages have passed since the last turn reminder.
 */
function isTurnDue({ users, requests, requestsAtUser, turnAt }: NudgeHistory, config: PruningConfig): boolean {
  if (users === 0 || requests !== requestsAtUser) return false;
  return turnAt === undefined || users - turnAt >= config.nudgeDebounceTurns;
}
