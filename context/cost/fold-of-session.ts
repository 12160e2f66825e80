import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { type Checkpoint, CostFold } from "./fold.ts";

type Session = Pick<ExtensionContext, "sessionManager">;
type Entries = ReturnType<ExtensionContext["sessionManager"]["getEntries"]>;

/**
 * What the session in this pi has cost. It is no state of its own: whoever asks gets the fold over the session's entries,
 * of which only those are looked at that are new.
 */
export class FoldOfSession {
  #fold: CostFold | undefined;
  /** How many entries are in it, and the last of them. */
  #count = 0;
  #last: Entries[number] | undefined;

  /** Another session may be in this pi. */
  forget(): void {
    this.#fold = undefined;
  }

  /** `checkpoints`: those that were made since it was asked last; none at first. */
  read({ sessionManager }: Session): { readonly fold: CostFold; readonly checkpoints: readonly Checkpoint[] } {
    const entries = sessionManager.getEntries();
    // A session's entries are only ever added to; others are another's.
    const before =
      this.#count === 0 || (entries.length >= this.#count && entries[this.#count - 1] === this.#last)
        ? this.#fold
        : undefined;
    const fold = before ?? new CostFold();
    const checkpoints: Checkpoint[] = [];
    for (let at = before === undefined ? 0 : this.#count; at < entries.length; at++) {
      const checkpoint = fold.add(entries[at]);
      if (checkpoint !== undefined) checkpoints.push(checkpoint);
    }
    this.#fold = fold;
    this.#count = entries.length;
    this.#last = entries.at(-1);
    return { fold, checkpoints: before === undefined ? [] : checkpoints };
  }
}
