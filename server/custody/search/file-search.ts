import { isRecord } from "../../../protocol/objects.ts";
import type { SearchHit, Unsearched } from "../../../protocol/transcript-methods.ts";
import { openInThread } from "../../pi/open-file.ts";
import type { SessionFileOwner } from "../../pi/session-paths.ts";
import { isBounded } from "../../pi/structure.ts";
import { EntryFile, type Line, LinesBackwards, type ReadBudget } from "../entry-file.ts";
import { placeIn } from "../entry-places.ts";
import { textsOf } from "./entry-texts.ts";
import { excerptOf, Literal } from "./literal.ts";

/** Where the search of a file goes on. */
export interface FilePlace {
  readonly at: number;
  /** The end of the next line. */
  readonly end: number;
  readonly inode: number;
  /** Of its content up to `end`. */
  readonly mark: number;
  /** The next entry of the branch. Null: its beginning was searched. Undefined: no entry was. */
  readonly want: string | null | undefined;
}

/** A session and its file. */
export interface SearchedFile extends SessionFileOwner {
  /** Its conversation is only in its pi's memory: it has no file. */
  readonly isEphemeral: boolean;
}

/** What a thread searches. */
export interface SearchOrder {
  readonly query: string;
  readonly maxHits: number;
  readonly maxUnsearched: number;
  readonly maxBytes: number;
  readonly maxMs: number;
  readonly sessions: readonly SearchedFile[];
  /** Of the first session. Undefined: its end. */
  readonly from: FilePlace | undefined;
}

export type ThreadUnsearched = Omit<Unsearched, "why"> & { readonly why: Unsearched["why"] | "file_missing" };

export interface SearchAnswer {
  readonly hits: readonly SearchHit[];
  readonly unsearched: readonly ThreadUnsearched[];
  readonly bytes: number;
  /** The session of the order with which the search goes on. Undefined: everything was searched. */
  readonly next: { readonly index: number; readonly place: FilePlace | undefined } | undefined;
}

/** Searches session files, the last entry of each first, until one of the limits. */
export async function searchFiles(order: SearchOrder): Promise<SearchAnswer> {
  return await new FileSearch(order).run();
}

class FileSearch {
  readonly #order: SearchOrder;
  readonly #literal: Literal;
  readonly #budget: ReadBudget;
  readonly #endsAt: number;
  readonly #hits: SearchHit[] = [];
  readonly #unsearched: ThreadUnsearched[] = [];

  constructor(order: SearchOrder) {
    this.#order = order;
    this.#literal = new Literal(order.query);
    this.#budget = { left: order.maxBytes };
    this.#endsAt = performance.now() + order.maxMs;
  }

  async run(): Promise<SearchAnswer> {
    let next: SearchAnswer["next"];
    for (const [index, owner] of this.#order.sessions.entries()) {
      if (index > 0 && this.#isOver()) {
        next = { index, place: undefined };
        break;
      }
      const place = await this.#session(owner, index === 0 ? this.#order.from : undefined);
      if (place === undefined) continue;
      next = { index, place };
      break;
    }
    const bytes = this.#order.maxBytes - this.#budget.left;
    return { hits: this.#hits, unsearched: this.#unsearched, bytes, next };
  }

  #isOver(): boolean {
    const { maxHits, maxUnsearched } = this.#order;
    const isFull = this.#hits.length >= maxHits || this.#unsearched.length >= maxUnsearched;
    return isFull || performance.now() >= this.#endsAt;
  }

  /** Returns where its search goes on. Undefined: it is over. */
  async #session(owner: SearchedFile, from: FilePlace | undefined): Promise<FilePlace | undefined> {
    const { sessionId } = owner;
    const file = owner.isEphemeral
      ? "ephemeral"
      : await EntryFile.open(owner, this.#budget, openInThread).catch(() => "file_unusable" as const);
    if (typeof file === "string") {
      this.#unsearched.push({ sessionId, why: file === "missing" ? "file_missing" : file });
      return undefined;
    }
    try {
      if (from !== undefined && !(await isPlaceOf(file, from))) {
        this.#unsearched.push({ sessionId, why: "file_rewritten" });
        return undefined;
      }
      return await this.#file(sessionId, file, from);
    } catch {
      this.#unsearched.push({ sessionId, why: "file_unusable" });
      return undefined;
    } finally {
      await file.close();
    }
  }

  async #file(sessionId: string, file: EntryFile, from: FilePlace | undefined): Promise<FilePlace | undefined> {
    const lines = new LinesBackwards(file, from ?? { at: file.size, end: file.size });
    let want = from?.want;
    for (;;) {
      const line = await lines.next();
      if (line === "start") return undefined;
      if (line !== "unread") {
        const place = placeIn(line);
        const isOfBranch = place?.id === want || (want === undefined && isWhole(line));
        this.#line(sessionId, line, { entryId: place?.id, isOnOtherBranch: !isOfBranch });
        if (place !== undefined && isOfBranch) want = place.parentId;
        if (line.start === 0) return undefined;
        if (!this.#isOver()) continue;
      }
      const { at, end } = lines.place;
      return { at, end, inode: file.inode, mark: await file.markAt(end), want };
    }
  }

  #line(
    sessionId: string,
    line: Line,
    { entryId, isOnOtherBranch }: { readonly entryId: string | undefined; readonly isOnOtherBranch: boolean },
  ): void {
    const { bytes } = line;
    if (bytes !== undefined && !this.#literal.mayBeIn(bytes.toString("latin1"))) return;
    if (bytes === undefined || !isBounded(bytes)) {
      this.#unsearched.push({ sessionId, ...(entryId !== undefined && { entryId }), why: "entry_too_large" });
      return;
    }
    const entry = parsed(bytes);
    if (entry === undefined || entryId === undefined) return;
    const { timestamp } = entry;
    const at = typeof timestamp === "string" ? Date.parse(timestamp) : Number.NaN;
    for (const { kind, text } of textsOf(entry)) {
      const match = this.#literal.in(text);
      if (match === undefined) continue;
      this.#hits.push({
        ...{ sessionId, entryId, kind },
        ...(at >= 0 && { at }),
        ...excerptOf(text, match),
        ...(isOnOtherBranch && { isOnOtherBranch }),
      });
      return;
    }
  }
}

async function isPlaceOf(file: EntryFile, { inode, end, mark }: FilePlace): Promise<boolean> {
  return file.inode === inode && file.size >= end && (await file.markAt(end)) === mark;
}

/** The last line may be written at this moment. */
function isWhole({ bytes }: Line): boolean {
  return bytes === undefined || parsed(bytes) !== undefined;
}

function parsed(line: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const entry: unknown = JSON.parse(line.toString("utf8"));
    return isRecord(entry) ? entry : undefined;
  } catch {
    // pi skips it, too.
    return undefined;
  }
}
