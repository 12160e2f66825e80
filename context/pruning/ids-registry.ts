import type { ExtensionContext } from "@earendil-works/pi-coding-agent";
import { BranchView } from "../../extension/branch-view.ts";
import type { SessionEntry } from "../../extension/pi-types.ts";
import { bareIds, idsIn, maxMessageNumber } from "./ids-record.ts";
import { isSpoken } from "./spoken.ts";

/** What is read of pi's session. */
export type IdsSession = Pick<
  ExtensionContext["sessionManager"],
  "getSessionId" | "getEntries" | "getEntry" | "getLeafEntry"
>;

/** What must outlive the modules: ids that were given, and that no entry of the file tells of yet. By entry. */
export type GivenIds = Map<string, number>;

/** Numbers are given one after the other. One that is further from all before it is no number of ours: none is lost for it. */
const longestStep = 100_000;

/**
 * Which number each entry has, over all branches of the session's file: a fold over its entries, which only grow. The
 * first record of an entry holds, and so does the first of a number.
 */
export class IdsRegistry {
  readonly #given: GivenIds;
  #session: string | undefined;
  #leaf: string | undefined;
  #seen = 0;
  #last: string | undefined;
  #highest = 0;
  #bare = 0;
  #isRecorded = false;
  /** Messages behind the newest record, in the order of the file. */
  #since: string[] = [];
  readonly #numbers = new Map<string, number>();
  readonly #entries = new Map<number, string>();
  /** Entries that tell of an entry's number. */
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

  /** The highest number that was given. 0: none. */
  highest(session: IdsSession): number {
    this.#follow(session);
    return this.#highest;
  }

  /** How often the model has named a message of the session without a tag, over the whole file. */
  bare(session: IdsSession): number {
    this.#follow(session);
    return this.#bare;
  }

  /** The number of an entry, which it gets now if it has none. `undefined`: there is none left. */
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

  /** Numbers that no entry of the file tells of. */
  unrecorded(session: IdsSession): ReadonlyMap<string, number> {
    this.#follow(session);
    return this.#given;
  }

  /**
   * Numbers that the active branch does not tell of: those that nothing tells of, and of these entries those that other
   * branches alone do. pi copies one branch into a fork.
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
    const entries = session.getEntries();
    const isSame = id === this.#session && (this.#seen === 0 || entries[this.#seen - 1]?.id === this.#last);
    if (!isSame) {
      this.#forget();
      this.#keepGiven(session);
    }
    for (; this.#seen < entries.length; this.#seen += 1) this.#read(entries[this.#seen] as SessionEntry);
    this.#last = entries.at(-1)?.id;
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

  /** What an answer of the model stands behind was shown to it, even if pi died before it could be written down. */
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

  /** A session that was forked off has entries of the one before. Others know nothing of its ids. */
  #keepGiven(session: IdsSession): void {
    for (const [entryId, number] of [...this.#given].toSorted(([, a], [, b]) => a - b)) {
      if (session.getEntry(entryId) !== undefined) this.#take(entryId, number);
      if (this.#numbers.get(entryId) !== number) this.#given.delete(entryId);
    }
  }

  #forget(): void {
    this.#seen = 0;
    this.#highest = 0;
    this.#bare = 0;
    this.#isRecorded = false;
    this.#since = [];
    this.#numbers.clear();
    this.#entries.clear();
    this.#records.clear();
  }
}
