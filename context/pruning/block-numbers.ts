import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { EntryFold } from "../folds.ts";
import { blockNumbersIn } from "./block-entries.ts";

type Session = Pick<ExtensionContext["sessionManager"], "getSessionId" | "getEntries">;

/** A larger gap was not written by this extension; the number is ignored. */
const longestStep = 100_000;

/** The highest block number over all branches of the file. */
export class BlockNumbers {
  readonly #fold = new EntryFold(
    () => ({ highest: 0 }),
    (sum, entry) => {
      for (const number of blockNumbersIn(entry)) {
        if (number > sum.highest && number <= sum.highest + longestStep) sum.highest = number;
      }
    },
  );

  highest(session: Session): number {
    return this.#fold.of(session).highest;
  }
}
