import type { SessionReader } from "../../../extension/pi-types.ts";

/**
 * Counts the compactions on the active branch. It does not use events of pi: a compaction that an extension drafts at a
 * boundary emits none, and the session may switch branches. If the branch has only grown, only new entries are read.
 */
export class CompactionCount {
  #leafId: string | undefined;
  #count = 0;

  on(session: SessionReader): number {
    let entry = session.getLeafEntry();
    const leafId = entry?.id;
    let count = 0;
    while (entry !== undefined && entry.id !== this.#leafId) {
      if (entry.type === "compaction") count += 1;
      entry = entry.parentId === null ? undefined : session.getEntry(entry.parentId);
    }
    this.#count = entry === undefined ? count : this.#count + count;
    this.#leafId = leafId;
    return this.#count;
  }

  /** Call when the session changes. */
  reset(): void {
    this.#leafId = undefined;
    this.#count = 0;
  }
}
