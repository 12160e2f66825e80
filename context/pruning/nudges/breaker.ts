import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { PruningConfig } from "../../../protocol/pruning/config.ts";
import { NudgeHistories } from "./history.ts";

/** Too many failures in a row stop compressions, and reminders, for a while. */
export interface Breaker {
  readonly histories: NudgeHistories;
  /** How many have failed, while compressions are stopped. `undefined`: they are not. */
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
