import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { SessionEntry } from "../../pi-types.ts";
import { type BatchCost, type RecallRecord, recordedIn } from "./record.ts";

/** What is read of pi's session. */
export type RecallSession = Pick<
  ExtensionContext["sessionManager"],
  "getSessionId" | "getEntries" | "getEntry" | "getLeafEntry"
>;

/** A record, and the entry that has it. */
export interface HeldRecord extends RecallRecord {
  readonly heldBy: string;
}

/** A batch of edits, as its custom entry tells of it. */
export interface HeldBatch {
  readonly part: string;
  readonly cost: BatchCost;
  readonly heldBy: string;
}

/** The last number there can be: behind it nothing leaves the context any more. */
const lastNumber = 999_999_999;

/**
 * What has left the context of the session, over all branches of its file: a fold over the entries, which only grow. An
 * entry that a hand has added cannot take a number from an earlier one.
 */
export class RecallRegistry {
  #session = "";
  #seen = 0;
  #last: string | undefined;
  #highest = 0;
  readonly #byNumber = new Map<number, HeldRecord>();
  readonly #byEntry = new Map<string, HeldRecord>();
  readonly #spilled = new Map<string, number>();
  readonly #batches: HeldBatch[] = [];

  find(number: number, session: RecallSession): HeldRecord | undefined {
    this.#follow(session);
    return this.#byNumber.get(number);
  }

  /** The record of an entry's output: of the entry that was edited, or of the result that was cut. */
  ofEntry(entryId: string, session: RecallSession): HeldRecord | undefined {
    this.#follow(session);
    return this.#byEntry.get(entryId);
  }

  all(session: RecallSession): HeldRecord[] {
    this.#follow(session);
    return [...this.#byNumber.values()];
  }

  batches(session: RecallSession): readonly HeldBatch[] {
    this.#follow(session);
    return this.#batches;
  }

  /** A number that nothing of this file has, and that no other call will get. `undefined`: there is none left. */
  reserve(session: RecallSession): number | undefined {
    this.#follow(session);
    if (this.#highest >= lastNumber) return undefined;
    this.#highest += 1;
    return this.#highest;
  }

  /** Bytes of the spilled texts that the session's file names, and of those that it is about to name. */
  spilledBytes(session: RecallSession): number {
    this.#follow(session);
    let sum = 0;
    for (const bytes of this.#spilled.values()) sum += bytes;
    return sum;
  }

  isSpilled(sha256: string): boolean {
    return this.#spilled.has(sha256);
  }

  /** A result that names this text is about to be written. */
  spilled(sha256: string, bytes: number): void {
    this.#spilled.set(sha256, bytes);
  }

  #follow(session: RecallSession): void {
    const entries = session.getEntries();
    const isSame =
      session.getSessionId() === this.#session && (this.#seen === 0 || entries[this.#seen - 1]?.id === this.#last);
    if (!isSame) this.#forget(session.getSessionId());
    for (; this.#seen < entries.length; this.#seen += 1) this.#take(entries[this.#seen] as SessionEntry);
    this.#last = entries.at(-1)?.id;
  }

  #take(entry: SessionEntry): void {
    const recorded = recordedIn(entry);
    if (recorded === undefined) return;
    for (const record of recorded.records) {
      this.#highest = Math.max(this.#highest, record.number);
      if (this.#byNumber.has(record.number)) continue;
      const held = { ...record, heldBy: entry.id };
      this.#byNumber.set(record.number, held);
      const entryId = record.place.kind === "entry" ? record.place.entryId : entry.id;
      if (!this.#byEntry.has(entryId)) this.#byEntry.set(entryId, held);
      if (record.place.kind === "spill") this.#spilled.set(record.place.sha256, record.place.bytes);
    }
    const part = recorded.records[0]?.part;
    if (entry.type === "custom" && part !== undefined) {
      this.#batches.push({ part, cost: recorded.cost, heldBy: entry.id });
    }
  }

  #forget(sessionId: string): void {
    this.#session = sessionId;
    this.#seen = 0;
    this.#highest = 0;
    this.#batches.length = 0;
    for (const map of [this.#byNumber, this.#byEntry, this.#spilled]) map.clear();
  }
}
