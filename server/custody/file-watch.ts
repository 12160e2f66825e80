import type { ForeignWrite } from "../../protocol/custody.ts";
import type { EntriesReply } from "../../protocol/link.ts";
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

/** The file as the session's own children have left it. */
export interface OwnMark extends FileMark {
  /** Whether a child was there to write on: what has been added since may be its own. */
  readonly isOpen: boolean;
}

/** A foreign write, and whether the file can be loaded again without leaving what is the session's own. */
export interface Finding extends ForeignWrite {
  /** Where the session's own branch ends. */
  readonly ownLeaf?: string;
  readonly canReload: boolean;
}

/**
 * Which entries the child has behind one of them. Nothing where it cannot be asked: its session is being replaced, or its
 * helper does not answer.
 */
export type AskForEntries = (since: string | undefined) => Promise<EntriesReply | undefined>;

/** More ids than this are not told by a pi at once. */
const maxTold = 10_000;

/**
 * Tells what others have written to a session's file from what its own child has: by size, inode and time at a glance,
 * and by the ids of the entries when those differ. pi itself says which entries are its own.
 */
export class FileWatch {
  #mark: OwnMark | undefined;

  constructor(mark: OwnMark | undefined) {
    this.#mark = mark;
  }

  /** To be kept, for the daemon that comes after this one. */
  get mark(): OwnMark | undefined {
    return this.#mark;
  }

  /** The file is taken as it will be found next. */
  forget(): void {
    this.#mark = undefined;
  }

  /** Before a child is started: nothing of ours has written since the last one ended, unless its daemon ended with it. */
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
    // A header alone is written anew.
    if (finding === undefined || (change.kind === "removed" && mark.lastId === undefined)) {
      this.#open(change.mark);
      return undefined;
    }
    return finding;
  }

  /** What {@link beforeStart} found is accepted. */
  async accept(file: string): Promise<void> {
    this.#open(await markOf(file));
  }

  /** While a child is there. `during` says whether a run may have been on since the last look. */
  async look(file: string, ask: AskForEntries, during: "run" | "idle"): Promise<Finding | undefined> {
    const mark = this.#mark ?? noFile;
    const change = await changeSince(file, mark);
    if (change === undefined) return undefined;
    // Behind the look at the file: pi knows at least what it had written by then.
    const known = await ask(change.kind === "rewritten" ? undefined : mark.lastId);
    const finding = known === undefined ? unasked(change, mark, during) : compared(change, known, mark, during);
    // A file that is gone is missed at each look, until somebody decides.
    if (change.kind !== "removed") this.#open(change.mark);
    return finding;
  }

  /** The child has ended: what it has written at last is its own, unless it makes a tree. */
  async ended(file: string): Promise<Finding | undefined> {
    const mark = this.#mark;
    if (mark === undefined) return undefined;
    const change = await changeSince(file, mark);
    const finding = change === undefined ? undefined : unasked(change, mark, "run");
    // What it does not account for is found before the next start.
    const isLost = change?.kind === "removed" || (change?.kind === "rewritten" && finding !== undefined);
    this.#mark = { ...(isLost ? mark : (change?.mark ?? mark)), isOpen: false };
    return isLost ? undefined : finding;
  }

  #open(mark: FileMark): void {
    this.#mark = { ...mark, isOpen: true };
  }
}

/** Whether a child that nobody can ask any more may have written it. */
function isOwn(change: FileChange, mark: FileMark): boolean {
  if (change.kind === "grown") return isOneLine(change.entries, mark.lastId);
  if (change.kind === "rewritten") return mark.lastId === undefined || has(change.entries, mark.lastId);
  return mark.lastId === undefined;
}

function unasked(change: FileChange, mark: FileMark, during: ForeignWrite["during"]): Finding | undefined {
  return isOwn(change, mark) ? undefined : foreignFinding(change, mark, during);
}

/** Everything in the change is somebody else's. */
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
  const strangers = newest.filter(({ id }) => !own.has(id)).length;
  const isMissing = change.kind === "rewritten" && leafId !== undefined && !has(change.entries, leafId);
  if (strangers === 0 && !isMissing && change.kind !== "removed") return undefined;
  return findingOf(change, strangers, leafId ?? mark.lastId, mark, during);
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
    // Without a pi there is nothing in memory that could be left.
    canReload: kind !== "removed" && isInIt && (during === "asleep" || !divergent),
  };
}

function has(entries: readonly EntryHead[], id: string): boolean {
  return entries.some((entry) => entry.id === id);
}
