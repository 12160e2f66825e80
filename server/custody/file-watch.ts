import type { ForeignWrite } from "../../protocol/custody.ts";
import type { EntriesReply } from "../../protocol/link-inward.ts";
import {
  changeSince,
  descends,
  type EntryHead,
  type FileChange,
  type FileMark,
  isOneLine,
  markOf,
  noFile,
} from "../pi/file-mark.ts";

/** The file as the session's own children left it. */
export interface OwnMark extends FileMark {
  /** Whether a child was present and may have written the additions. */
  readonly isOpen: boolean;
}

/** A foreign write, and whether the file can be reloaded without losing the session's own entries. */
export interface Finding extends ForeignWrite {
  /** The last entry of the session's own branch. */
  readonly ownLeaf?: string;
  readonly canReload: boolean;
}

/**
 * The entries that the child has after one of them. Empty if it cannot be asked: its session is being replaced, or
 * its helper does not answer.
 */
export type AskForEntries = (since: string | undefined) => Promise<EntriesReply | undefined>;

/** The maximum number of ids in one answer of pi. */
const maxTold = 10_000;

/**
 * Tells foreign writes to a session's file from its own child's: first by size, inode and time, and if those differ
 * by the ids of the entries. pi itself reports its own entries.
 */
export class FileWatch {
  #mark: OwnMark | undefined;

  constructor(mark: OwnMark | undefined) {
    this.#mark = mark;
  }

  /** Stored for the next daemon. */
  get mark(): OwnMark | undefined {
    return this.#mark;
  }

  /** Accepts the next state of the file. */
  forget(): void {
    this.#mark = undefined;
  }

  /**
   * Before a child is started: our children have not written since the last one ended, unless its daemon was killed
   * with it.
   */
  async beforeStart(file: string): Promise<Finding | undefined> {
    const mark = this.#mark;
    const change = mark === undefined ? undefined : await changeSince(file, mark);
    if (change === undefined || mark === undefined) {
      this.#open(mark ?? (await markOf(file)));
      return undefined;
    }
    if (mark.isOpen && isOwn(change, mark)) {
      this.#open(change.mark);
      return undefined;
    }
    const finding = foreignFinding(change, mark, "asleep");
    // A header alone is written again.
    if (finding === undefined || (change.kind === "removed" && mark.lastId === undefined)) {
      this.#open(change.mark);
      return undefined;
    }
    return finding;
  }

  /** Accepts the finding of {@link beforeStart}. */
  async accept(file: string): Promise<void> {
    this.#open(await markOf(file));
  }

  /** While a child is present. `during`: whether a run may have been active since the last check. */
  async look(file: string, ask: AskForEntries, during: "run" | "idle"): Promise<Finding | undefined> {
    const mark = this.#mark ?? noFile;
    const change = await changeSince(file, mark);
    if (change === undefined) return undefined;
    // Asked after the file was checked: pi knows at least the entries that it had written by then.
    const known = await ask(change.kind === "rewritten" ? undefined : mark.lastId);
    const finding = known === undefined ? unasked(change, mark, during) : compared(change, known, mark, during);
    // A missing file is reported at each check, until a decision.
    if (change.kind !== "removed") this.#open(change.mark);
    return finding;
  }

  /** The child has ended: its last entries are its own, unless they fork the tree. */
  async ended(file: string): Promise<Finding | undefined> {
    const mark = this.#mark;
    if (mark === undefined) return undefined;
    const change = await changeSince(file, mark);
    const finding = change === undefined ? undefined : unasked(change, mark, "run");
    // Other entries are found before the next start.
    const isLost = change?.kind === "removed" || (change?.kind === "rewritten" && finding !== undefined);
    this.#mark = { ...(isLost ? mark : (change?.mark ?? mark)), isOpen: false };
    return isLost ? undefined : finding;
  }

  #open(mark: FileMark): void {
    this.#mark = { ...mark, isOpen: true };
  }
}

/** Whether a child that can no longer be asked may have written it. */
function isOwn(change: FileChange, mark: FileMark): boolean {
  if (change.kind === "grown") return isOneLine(change.entries, mark.lastId);
  if (change.kind === "rewritten") return mark.lastId === undefined || has(change.entries, mark.lastId);
  return mark.lastId === undefined;
}

function unasked(change: FileChange, mark: FileMark, during: ForeignWrite["during"]): Finding | undefined {
  return isOwn(change, mark) ? undefined : foreignFinding(change, mark, during);
}

/** The entire change is foreign. */
function foreignFinding(change: FileChange, mark: FileMark, during: ForeignWrite["during"]): Finding | undefined {
  if (change.kind === "grown" && change.entries.length === 0) return undefined;
  return findingOf(change, change.entries.length, mark.lastId, mark, during);
}

function compared(
  change: FileChange,
  { ids, leafId }: EntriesReply,
  mark: FileMark,
  during: ForeignWrite["during"],
): Finding | undefined {
  const own = new Set(ids);
  const newest = ids.length >= maxTold ? change.entries.slice(-maxTold) : change.entries;
  const foreign = newest.filter(({ id }) => !own.has(id)).length;
  const isMissing = change.kind === "rewritten" && leafId !== undefined && !has(change.entries, leafId);
  if (foreign === 0 && !isMissing && change.kind !== "removed") return undefined;
  return findingOf(change, foreign, leafId ?? mark.lastId, mark, during);
}

function findingOf(
  change: FileChange,
  entries: number,
  ownLeaf: string | undefined,
  mark: FileMark,
  during: ForeignWrite["during"],
): Finding {
  const { kind } = change;
  const isInIt = kind === "grown" || ownLeaf === undefined || has(change.entries, ownLeaf);
  const divergent = kind === "removed" || !isInIt || !descends(change.entries, ownLeaf);
  const lastEntryId = change.entries.at(-1)?.id ?? (kind === "grown" ? mark.lastId : undefined);
  return {
    kind,
    entries,
    ...(lastEntryId === undefined ? {} : { lastEntryId }),
    divergent,
    during,
    ...(ownLeaf === undefined ? {} : { ownLeaf }),
    // Without a pi, no entries exist only in memory.
    canReload: kind !== "removed" && isInIt && (during === "asleep" || !divergent),
  };
}

function has(entries: readonly EntryHead[], id: string): boolean {
  return entries.some((entry) => entry.id === id);
}
