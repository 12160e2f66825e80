import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { SessionEntry } from "../../../extension/pi-types.ts";
import { EntryFold } from "../../folds.ts";
import { fromBlocks } from "./content.ts";
import { highestNamed, numbersIn, type PendingCuts } from "./pending-cuts.ts";
import { type BatchCost, type RecallPlace, type RecallRecord, recordedIn } from "./record.ts";

/** The members of pi's session that are read. */
export type RecallSession = Pick<
  ExtensionContext["sessionManager"],
  "getSessionId" | "getEntries" | "getEntry" | "getLeafEntry"
>;

/** A record with the entry that has it, or with the cut result. */
export interface HeldRecord extends RecallRecord {
  readonly heldBy: string;
}

/** A batch of edits, by its custom entry. */
export interface HeldBatch {
  readonly part: string;
  readonly cost: BatchCost;
  readonly heldBy: string;
}

/** The last number; after it nothing more can be removed. */
const lastNumber = 999_999_999;
/** Numbers are assigned in sequence. A larger gap was not written by this extension; the number is ignored. */
const longestStep = 100_000;

/**
 * The removed content of the session, over all branches of its file: a fold over the entries, which only grow. An entry
 * that was added by hand cannot take a number from an earlier one.
 */
export class RecallRegistry {
  readonly #fold = new EntryFold<void>(
    (session) => this.#forget(session.getSessionId()),
    (_sum, entry) => this.#take(entry),
  );
  #session = "";
  #highest = 0;
  readonly #byNumber = new Map<number, HeldRecord>();
  readonly #all: HeldRecord[] = [];
  readonly #byEntry = new Map<string, HeldRecord[]>();
  readonly #spilled = new Map<string, number>();
  readonly #batches: HeldBatch[] = [];
  readonly #pending: PendingCuts;

  /** `pending`: cuts that may never be recorded, because another extension can replace a result's details. */
  constructor(pending: PendingCuts = new Map()) {
    this.#pending = pending;
  }

  find(number: number, session: RecallSession): HeldRecord | undefined {
    this.#fold.of(session);
    return this.#unrecorded().find((held) => held.number === number) ?? this.#byNumber.get(number);
  }

  /**
   * Returns the records of an edited entry or a cut result, oldest first. They share its first number, with which recall
   * returns the original.
   */
  ofEntry(entryId: string, session: RecallSession): readonly HeldRecord[] {
    this.#fold.of(session);
    return this.#byEntry.get(entryId) ?? this.#unrecorded().filter(({ heldBy }) => heldBy === entryId);
  }

  /** Records of results that were stored without them. Each stays until an entry records it. */
  unrecorded(session: RecallSession): readonly HeldRecord[] {
    this.#fold.of(session);
    return this.#unrecorded();
  }

  all(session: RecallSession): readonly HeldRecord[] {
    this.#fold.of(session);
    return this.#all;
  }

  batches(session: RecallSession): readonly HeldBatch[] {
    this.#fold.of(session);
    return this.#batches;
  }

  /** Reserves a number that is unused in this file. `undefined`: none is left. */
  reserve(session: RecallSession): number | undefined {
    this.#fold.of(session);
    do this.#highest += 1;
    while (this.#byNumber.has(this.#highest) || this.#pendingOf(this.#highest) !== undefined);
    return this.#highest <= lastNumber ? this.#highest : undefined;
  }

  /** Bytes of the spilled texts that the session's file names now or with the next result. */
  spilledBytes(session: RecallSession): number {
    this.#fold.of(session);
    let sum = 0;
    for (const bytes of this.#spilled.values()) sum += bytes;
    return sum;
  }

  isSpilled(sha256: string): boolean {
    return this.#spilled.has(sha256);
  }

  /** Call before a result that names this text is written. */
  spilled(sha256: string, bytes: number): void {
    this.#spilled.set(sha256, bytes);
  }

  #take(entry: SessionEntry): void {
    const recorded = recordedIn(entry);
    if (recorded === undefined) {
      this.#takeCut(entry);
      return;
    }
    if (recorded.batch !== undefined) this.#batches.push({ ...recorded.batch, heldBy: entry.id });
    for (const record of recorded.records) {
      const { number, place } = record;
      const heldBy = place.kind === "spill" ? (place.resultId ?? entry.id) : entry.id;
      const held = { ...record, heldBy };
      const entryId = place.kind === "entry" ? place.entryId : heldBy;
      if (isSamePlace(this.#pendingOf(number)?.record.place, place)) this.#pending.delete(number);
      if (number > this.#highest && number <= this.#highest + longestStep) this.#highest = number;
      if (!this.#byNumber.has(number)) this.#byNumber.set(number, held);
      this.#all.push(held);
      const ofEntry = this.#byEntry.get(entryId);
      if (ofEntry === undefined) this.#byEntry.set(entryId, [held]);
      else ofEntry.push(held);
      if (place.kind === "spill") this.#spilled.set(place.sha256, place.bytes);
    }
  }

  /** Matches a mark in a result's text with a pending cut of this process. */
  #takeCut({ id, ...entry }: SessionEntry): void {
    if (entry.type !== "message" || entry.message.role !== "toolResult") return;
    const { content, toolCallId } = entry.message;
    const numbers = numbersIn(fromBlocks(content).text);
    this.#highest = highestNamed(numbers, this.#highest);
    for (const number of numbers) {
      const cut = this.#pendingOf(number);
      if (cut?.toolCallId === toolCallId && cut.resultId === undefined)
        this.#pending.set(number, { ...cut, resultId: id });
    }
  }

  #pendingOf(number: number) {
    const cut = this.#pending.get(number);
    return cut?.sessionId === this.#session ? cut : undefined;
  }

  #unrecorded(): HeldRecord[] {
    return [...this.#pending.values()].flatMap(({ sessionId, record, resultId }) => {
      const { place } = record;
      if (sessionId !== this.#session || resultId === undefined || place.kind === "entry") return [];
      return [{ ...record, place: { ...place, resultId }, heldBy: resultId }];
    });
  }

  #forget(sessionId: string): void {
    this.#session = sessionId;
    this.#highest = 0;
    this.#all.length = 0;
    this.#batches.length = 0;
    for (const map of [this.#byNumber, this.#byEntry, this.#spilled]) map.clear();
    for (const { sessionId: of, record } of this.#pending.values())
      if (of === sessionId && record.place.kind === "spill") this.spilled(record.place.sha256, record.place.bytes);
  }
}

function isSamePlace(pending: RecallPlace | undefined, place: RecallPlace): boolean {
  return pending?.kind === "spill" && place.kind === "spill" && pending.sha256 === place.sha256;
}
