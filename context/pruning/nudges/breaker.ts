import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PruningConfig } from "../../../protocol/pruning/config.ts";
import { NudgeHistories } from "./history.ts";

/** Pauses compressions and reminders after too many consecutive failures. */
export interface Breaker {
  readonly histories: NudgeHistories;
  /** The number of failures while compressions are paused. `undefined`: not paused. */
  readonly breaker: (ctx: ExtensionContext) => number | undefined;
}

export function createBreaker(pruning: () => PruningConfig): Breaker {
  const histories = new NudgeHistories();
  return {
    histories,
    breaker: ({ sessionManager }) => {
      const { brokenAt, failures } = histories.on(sessionManager, pruning().nudges);
      return brokenAt === undefined ? undefined : failures;
    },
  };
}
