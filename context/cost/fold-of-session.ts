import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { type Checkpoint, CostFold } from "./fold.ts";

type Session = Pick<ExtensionContext, "sessionManager">;
type Entries = ReturnType<ExtensionContext["sessionManager"]["getEntries"]>;

/** The cost of the session in this pi: a fold over the session's entries that reads only new ones. */
export class FoldOfSession {
  #fold: CostFold | undefined;
  /** Number of entries read, and the last of them. */
  #count = 0;
  #last: Entries[number] | undefined;

  /** The session in this pi may have changed. */
  forget(): void {
    this.#fold = undefined;
  }

  /** Returns the fold and the checkpoints created since the last call; none at first. */
  read({ sessionManager }: Session): { readonly fold: CostFold; readonly checkpoints: readonly Checkpoint[] } {
    const entries = sessionManager.getEntries();
    // Entries of a session are only appended; otherwise the session has changed.
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
