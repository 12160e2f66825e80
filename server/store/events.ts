import type { Gap } from "../../protocol/event.ts";
import { followedBy, isLarge } from "../frames/large-record.ts";
import type { Database } from "./database.ts";
import { packed, unpacked } from "./packing.ts";
import { steadyNow } from "./retention-clock.ts";

export interface EventLimits {
  /** Compressed bytes that are kept of one session. */
  readonly maxSessionBytes: number;
  /** Compressed bytes that are kept of all sessions. */
  readonly maxTotalBytes: number;
}

/** A contiguous part of a session's log, from the first number to the last. Its deltas are not stored. */
export interface StoredSpan {
  readonly firstSeq: number;
  readonly lastSeq: number;
  /** Why nothing is stored of it. */
  readonly gap?: Gap["reason"];
  /** The frames, in order. */
  readonly frames: readonly Buffer[];
}

export interface StoredSpans {
  readonly spans: readonly StoredSpan[];
  /** Whether nothing newer is stored. */
  readonly isEnd: boolean;
}

interface Kept {
  bytes: number;
  newest: number;
}

/** A row's own size, without its frames. */
const rowBytes = 128;
/** A row of this size is compressed by the writing thread. */
const largeRowBytes = 64 * 1024;
const lineFeed = 0x0a;

/**
 * The sessions' logs on disk: rows of many frames, compressed, with the numbers that they cover. A lost or damaged
 * row is a gap, and a completely lost log can be rebuilt from pi's session files; so no caller waits for these
 * writes.
 */
export class EventStore {
  readonly #database: Database;
  readonly #now: () => number;
  readonly #limits: EventLimits;
  readonly #put;
  readonly #putAsItIs;
  readonly #size;
  readonly #read;
  readonly #readBack;
  readonly #sizes;
  readonly #forget;
  readonly #delete;
  readonly #cut;
  readonly #newestUpTo;
  readonly #expire;
  readonly #oldest;
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  constructor(database: Database, limits: EventLimits, now = steadyNow) {
    this.#database = database;
    this.#now = now;
    this.#limits = limits;
    this.#put = database.prepare(
      `WITH row AS MATERIALIZED (SELECT packed(?5) AS frames)
       INSERT OR IGNORE INTO events (session_id, last_seq, first_seq, at, bytes, gap, frames)
       SELECT ?1, ?2, ?3, ?4, length(frames) + ${rowBytes}, NULL, frames FROM row`,
    );
    this.#putAsItIs = database.prepare(
      `INSERT OR IGNORE INTO events (session_id, last_seq, first_seq, at, bytes, gap, frames)
       VALUES (?1, ?2, ?3, ?4, length(?6) + ${rowBytes}, ?5, ?6)`,
    );
    this.#size = database.prepare("SELECT bytes FROM events WHERE session_id = ? AND last_seq = ?");
    this.#read = database.prepare(
      `SELECT first_seq, last_seq, gap, frames FROM events WHERE session_id = ? AND last_seq > ?
       ORDER BY last_seq LIMIT 1`,
    );
    this.#readBack = database.prepare(
      `SELECT first_seq, last_seq, gap, frames FROM events WHERE session_id = ? AND first_seq < ?
       ORDER BY last_seq DESC LIMIT 1`,
    );
    this.#sizes = database.prepare("SELECT last_seq, bytes FROM events WHERE session_id = ? ORDER BY last_seq");
    this.#forget = database.prepare("DELETE FROM events WHERE session_id = ? AND last_seq <= ?");
    this.#delete = database.prepare("DELETE FROM events WHERE session_id = ?");
    this.#cut = database.prepare("DELETE FROM events WHERE session_id = ? AND last_seq > ?");
    this.#newestUpTo = database.prepare(
      "SELECT max(last_seq) AS newest FROM events WHERE session_id = ? AND last_seq <= ?",
    );
    // The newest row stays: it holds the last number of the log.
    this.#expire = database.prepare(
      `DELETE FROM events WHERE at < ? AND last_seq <
         (SELECT max(last_seq) FROM events AS newer WHERE newer.session_id = events.session_id)`,
    );
    this.#oldest = database.prepare("SELECT at, bytes FROM events ORDER BY at");
    this.#recount();
  }

  /** Compressed bytes stored of all sessions. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The newest stored number of a session, up to `upTo`. */
  newest(sessionId: string, upTo = Number.MAX_SAFE_INTEGER): number | undefined {
    const newest = this.#kept.get(sessionId)?.newest;
    if (newest === undefined || newest <= upTo) return newest;
    const found = this.#newestUpTo.get(sessionId, upTo)?.["newest"];
    return typeof found === "number" ? found : undefined;
  }

  /** Stores a span with the frames to keep. Rejects if it was not written. */
  async put(sessionId: string, firstSeq: number, lastSeq: number, frames: readonly Buffer[]): Promise<void> {
    const [first] = frames;
    const joined =
      first !== undefined && frames.length === 1 && isLarge(first)
        ? followedBy(first, lineFeed)
        : Buffer.concat(frames.flatMap((frame) => [frame, newline]));
    const head = [sessionId, lastSeq, firstSeq, this.#now()] as const;
    // Small rows do not justify the writing thread.
    if (joined.length < largeRowBytes) await this.#database.note(this.#putAsItIs, ...head, null, packed(joined));
    else {
      const written = this.#database.note(this.#put, ...head, joined);
      // A large row need not wait for others to share its transaction, and a child's output may wait for it.
      this.#database.commitSoon();
      await written;
    }
    await this.#added(sessionId, lastSeq);
  }

  /** Stores that a span is a gap, and the reason. */
  async putGap(sessionId: string, { from, to, reason }: Gap): Promise<void> {
    await this.#database.note(this.#putAsItIs, sessionId, to, from, this.#now(), reason, emptyBytes);
    await this.#added(sessionId, to);
  }

  /** Spans after a number: at least one if there is any, and about `maxBytes` at most. */
  read(sessionId: string, after: number, maxBytes: number): StoredSpans {
    const spans: StoredSpan[] = [];
    let size = 0;
    let last = after;
    while (size < maxBytes) {
      const row = this.#read.get(sessionId, last);
      if (row === undefined) return { spans, isEnd: true };
      const span = spanOf(row);
      last = Number(row["last_seq"]);
      if (span === undefined) continue;
      spans.push(span);
      for (const { length } of span.frames) size += length;
    }
    return { spans, isEnd: false };
  }

  /** Spans that begin before a number, newest first. */
  *readBack(sessionId: string, before: number): Generator<StoredSpan, void> {
    let last = before;
    while (true) {
      const row = this.#readBack.get(sessionId, last);
      if (row === undefined) return;
      last = Number(row["first_seq"]);
      const span = spanOf(row);
      if (span !== undefined) yield span;
    }
  }

  /** Deletes rows above a number: their numbers were not reserved. Rejects if that was not written. */
  async cut(sessionId: string, upTo: number): Promise<void> {
    if ((this.newest(sessionId) ?? 0) <= upTo) return;
    await this.#database.write(this.#cut, sessionId, upTo);
    this.#kept.delete(sessionId);
    this.#recount();
  }

  /** Deletes a session's log. */
  async delete(sessionId: string): Promise<void> {
    this.#bytes -= this.#kept.get(sessionId)?.bytes ?? 0;
    this.#kept.delete(sessionId);
    await this.#database.clear(`events ${sessionId}`, this.#delete, sessionId);
  }

  /** Deletes rows stored before a time, in Unix milliseconds, and the oldest beyond the total limit. */
  async expire(before: number): Promise<void> {
    await this.#database.note(this.#expire, before);
    this.#recount();
    const { maxTotalBytes } = this.#limits;
    if (this.#bytes <= maxTotalBytes) return;
    let excess = this.#bytes - lowered(maxTotalBytes);
    for (const { at, bytes } of this.#oldest.all()) {
      excess -= Number(bytes);
      if (excess > 0) continue;
      await this.#database.note(this.#expire, Number(at) + 1);
      break;
    }
    this.#recount();
  }

  /** Counts a written row, and deletes old ones beyond the limits. */
  async #added(sessionId: string, lastSeq: number): Promise<void> {
    const { maxSessionBytes, maxTotalBytes } = this.#limits;
    const bytes = Number(this.#size.get(sessionId, lastSeq)?.["bytes"] ?? 0);
    const kept = this.#kept.get(sessionId) ?? { bytes: 0, newest: 0 };
    this.#kept.set(sessionId, kept);
    kept.bytes += bytes;
    kept.newest = Math.max(kept.newest, lastSeq);
    this.#bytes += bytes;
    if (kept.bytes > maxSessionBytes) await this.#limit(sessionId, kept);
    if (this.#bytes > maxTotalBytes) await this.expire(0);
  }

  /** Deletes a session's oldest rows, somewhat more than necessary. */
  async #limit(sessionId: string, kept: Kept): Promise<void> {
    let excess = kept.bytes - lowered(this.#limits.maxSessionBytes);
    let freed = 0;
    let upTo = 0;
    for (const { last_seq, bytes } of this.#sizes.all(sessionId)) {
      if (excess <= 0 || last_seq === kept.newest) break;
      excess -= Number(bytes);
      freed += Number(bytes);
      upTo = Number(last_seq);
    }
    await this.#database.note(this.#forget, sessionId, upTo);
    kept.bytes -= freed;
    this.#bytes -= freed;
  }

  #recount(): void {
    const rows = this.#database
      .prepare("SELECT session_id AS id, sum(bytes) AS bytes, max(last_seq) AS newest FROM events GROUP BY session_id")
      .all();
    this.#bytes = 0;
    const newest = new Map(Array.from(this.#kept, ([id, kept]) => [id, kept.newest]));
    this.#kept.clear();
    for (const row of rows) {
      const id = String(row["id"]);
      const bytes = Number(row["bytes"]);
      this.#kept.set(id, { bytes, newest: Math.max(newest.get(id) ?? 0, Number(row["newest"])) });
      this.#bytes += bytes;
    }
  }
}

const emptyBytes = new Uint8Array(0);
const newline = Buffer.from([lineFeed]);

/** Deletions free a sixteenth of the limit more than needed, so that they are not repeated for each row. */
function lowered(maxBytes: number): number {
  return maxBytes - (maxBytes >> 4);
}

/** Undefined if the bytes are damaged: a gap. */
function spanOf(row: Readonly<Record<string, unknown>>): StoredSpan | undefined {
  const { first_seq: firstSeq, last_seq: lastSeq, gap, frames } = row;
  if (typeof firstSeq !== "number" || typeof lastSeq !== "number" || firstSeq > lastSeq) return undefined;
  if (typeof gap === "string") return { firstSeq, lastSeq, gap: gap as Gap["reason"], frames: [] };
  if (!(frames instanceof Uint8Array)) return undefined;
  try {
    return { firstSeq, lastSeq, frames: lines(unpacked(frames)) };
  } catch {
    return undefined;
  }
}

function lines(bytes: Buffer): Buffer[] {
  const found: Buffer[] = [];
  let start = 0;
  for (let end = bytes.indexOf(lineFeed); end !== -1; end = bytes.indexOf(lineFeed, start)) {
    found.push(bytes.subarray(start, end));
    start = end + 1;
  }
  return found;
}
