import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { BranchView } from "../../extension/branch-view.ts";
import type { SessionEntry } from "../../extension/pi-types.ts";
import { EntryFold } from "../folds.ts";
import { bareIds, idsIn, maxMessageNumber } from "./ids-record.ts";
import { isSpoken } from "./spoken.ts";

/** The part of pi's session that the registry reads. */
export type IdsSession = Pick<
  ExtensionContext["sessionManager"],
  "getSessionId" | "getEntries" | "getEntry" | "getLeafEntry"
>;

/** Assigned ids that no entry of the file records yet, by entry. Survives a reload of the modules. */
export type GivenIds = Map<string, number>;

/** Numbers are assigned in sequence. A larger gap was not written by this extension; the number is ignored. */
const longestStep = 100_000;

/**
 * The number of each entry over all branches of the session's file: a fold over its append-only entries. The first record
 * of an entry wins, and the first record of a number.
 */
export class IdsRegistry {
  readonly #given: GivenIds;
  readonly #fold = new EntryFold<void, IdsSession>(
    (session) => {
      this.#forget();
      this.#keepGiven(session);
    },
    (_sum, entry) => this.#read(entry),
  );
  /** The session and the leaf that were read last. */
  #session: string | undefined;
  #leaf: string | undefined;
  #highest = 0;
  #bare = 0;
  #isRecorded = false;
  /** Messages after the newest record, in file order. */
  #since: string[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #entries = new Map<number, string>();
  /** Entries that record an entry's number. */
  readonly #records = new Map<string, string[]>();

  constructor(given: GivenIds = new Map()) {
    this.#given = given;
  }

  numberOf(entryId: string, session: IdsSession): number | undefined {
    this.#follow(session);
    return this.#numbers.get(entryId);
  }

  entryOf(number: number, session: IdsSession): string | undefined {
    this.#follow(session);
    return this.#entries.get(number);
  }

  /** The highest assigned number. 0: none. */
  highest(session: IdsSession): number {
    this.#follow(session);
    return this.#highest;
  }

  /** How often the model wrote an untagged id of the session, over the whole file. */
  bare(session: IdsSession): number {
    this.#follow(session);
    return this.#bare;
  }

  /** Returns the number of an entry and assigns one if it has none. `undefined`: no number is left. */
  give(entryId: string, session: IdsSession): number | undefined {
    this.#follow(session);
    const known = this.#numbers.get(entryId);
    if (known !== undefined) return known;
    const number = this.#highest + 1;
    if (number > maxMessageNumber) return undefined;
    this.#take(entryId, number);
    this.#given.set(entryId, number);
    return number;
  }

  /** Numbers that no entry of the file records. */
  unrecorded(session: IdsSession): ReadonlyMap<string, number> {
    this.#follow(session);
    return this.#given;
  }

  /**
   * Numbers that the active branch does not record: unrecorded numbers, and numbers of these entries that only other
   * branches record. pi copies a single branch into a fork.
   */
  unrecordedOn(entryIds: readonly string[], session: IdsSession): ReadonlyMap<string, number> {
    const branch = new BranchView(session);
    const missing = new Map(this.unrecorded(session));
    for (const entryId of entryIds) {
      const number = this.#numbers.get(entryId);
      const records = this.#records.get(entryId) ?? [];
      if (number !== undefined && !records.some((record) => branch.has(record))) missing.set(entryId, number);
    }
    return missing;
  }

  #follow(session: IdsSession): void {
    const leaf = session.getLeafEntry()?.id;
    const id = session.getSessionId();
    if (id === this.#session && leaf === this.#leaf) return;
    this.#fold.of(session);
    this.#session = id;
    this.#leaf = leaf;
  }

  #read(entry: SessionEntry): void {
    const ids = idsIn(entry);
    if (ids === undefined) {
      this.#readMessage(entry);
      return;
    }
    this.#isRecorded = true;
    this.#since = [];
    for (const [entryId, number] of ids) {
      if (this.#given.get(entryId) === number) this.#given.delete(entryId);
      if (number <= this.#highest + longestStep) this.#take(entryId, number);
      if (this.#numbers.get(entryId) !== number) continue;
      const records = this.#records.get(entryId);
      if (records === undefined) this.#records.set(entryId, [entry.id]);
      else records.push(entry.id);
    }
  }

  /** Messages before an answer were shown to the model, even if pi died before it recorded their numbers. */
  #readMessage(entry: SessionEntry): void {
    if (isSpoken(entry)) this.#since.push(entry.id);
    if (entry.type !== "message" || entry.message.role !== "assistant") return;
    if (this.#isRecorded) {
      for (const entryId of this.#since) {
        if (this.#numbers.has(entryId) || this.#highest >= maxMessageNumber) continue;
        this.#given.set(entryId, this.#highest + 1);
        this.#take(entryId, this.#highest + 1);
      }
    }
    this.#since = [];
    const { content } = entry.message;
    for (const block of Array.isArray(content) ? content : []) {
      if (block.type === "text" && typeof block.text === "string") this.#bare += bareIds(block.text, this.#highest);
    }
  }

  #take(entryId: string, number: number): void {
    if (number > this.#highest) this.#highest = number;
    if (this.#numbers.has(entryId) || this.#entries.has(number)) return;
    this.#numbers.set(entryId, number);
    this.#entries.set(number, entryId);
  }

  /** A forked session shares entries with its parent and keeps their ids; other sessions drop them. */
  #keepGiven(session: IdsSession): void {
    for (const [entryId, number] of [...this.#given].toSorted(([, a], [, b]) => a - b)) {
      if (session.getEntry(entryId) !== undefined) this.#take(entryId, number);
      if (this.#numbers.get(entryId) !== number) this.#given.delete(entryId);
    }
  }

  #forget(): void {
    this.#highest = 0;
    this.#bare = 0;
    this.#isRecorded = false;
    this.#since = [];
    this.#numbers.clear();
    this.#entries.clear();
    this.#records.clear();
  }
}
