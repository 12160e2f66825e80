import type { DaemonEvent } from "../../protocol/feed.ts";
import type { Labels } from "../../protocol/session-options.ts";
import type { Database } from "./database.ts";

export interface FeedLimits {
  /** Number of kept events, and their bytes. */
  readonly maxFeedEvents: number;
  readonly maxFeedBytes: number;
}

/** An event, and the facts that decide who may read it. */
export interface FeedRow {
  readonly event: Omit<DaemonEvent, "after">;
  /** Absent if its session was unknown when it was written. */
  readonly scope?: { readonly cwd: string; readonly labels?: Labels };
}

/** The size of a row without the facts that decide who may read it. */
const rowBytes = 256;
const size = `${rowBytes} + ifnull(octet_length(cwd), 0) + ifnull(octet_length(labels), 0)`;
/** Rows that are examined in one step of deletion. */
const maxForgotten = 10_000;

/**
 * The feed: references to the events of all sessions, numbered without gaps. Triggers write the rows (see
 * `migrations.ts`); this class reads them once they are on disk, and deletes the oldest.
 */
export class FeedStore {
  /** The name of the feed. A rebuilt store has a new one. */
  readonly epoch: string;
  readonly #database: Database;
  readonly #limits: FeedLimits;
  readonly #read;
  readonly #added;
  readonly #oldestSizes;
  readonly #forget;
  #onAdded: () => void = () => {};
  #cursor = 0;
  #rows = 0;
  #bytes = 0;
  #isForgetting = false;

  constructor(database: Database, limits: FeedLimits) {
    this.#database = database;
    this.#limits = limits;
    this.epoch = String(database.prepare("SELECT epoch FROM feed_log").get()?.["epoch"]);
    this.#read = database.prepare("SELECT * FROM feed WHERE seq > ? ORDER BY seq LIMIT ?");
    this.#added = database.prepare(
      `SELECT max(seq) AS newest, count(*) AS number, sum(${size}) AS bytes FROM feed WHERE seq > ?`,
    );
    this.#oldestSizes = database.prepare(`SELECT seq, ${size} AS bytes FROM feed ORDER BY seq LIMIT ${maxForgotten}`);
    this.#forget = database.prepare("DELETE FROM feed WHERE seq <= ? AND seq < (SELECT max(seq) FROM feed)");
    this.#look();
    database.onCommitted(() => this.#look());
  }

  /** The number of the newest event on disk; 0 before the first. */
  get cursor(): number {
    return this.#cursor;
  }

  /** Calls `listener` after each transaction that added events. There is one listener. */
  onAdded(listener: () => void): void {
    this.#onAdded = listener;
  }

  /** Events after a number, in order. */
  read(after: number, limit: number): readonly FeedRow[] {
    return this.#read.all(after, limit).map(rowOf);
  }

  #look(): void {
    const { newest, number, bytes } = this.#added.get(this.#cursor) ?? {};
    if (typeof newest !== "number") return;
    this.#cursor = newest;
    this.#rows += Number(number);
    this.#bytes += Number(bytes);
    const { maxFeedEvents, maxFeedBytes } = this.#limits;
    if (this.#rows > maxFeedEvents || this.#bytes > maxFeedBytes) void this.#shorten();
    this.#onAdded();
  }

  /** Deletes the oldest events beyond the limits. */
  async #shorten(): Promise<void> {
    if (this.#isForgetting) return;
    this.#isForgetting = true;
    const { maxFeedEvents, maxFeedBytes } = this.#limits;
    const wanted = { rows: lowered(maxFeedEvents), bytes: lowered(maxFeedBytes) };
    let rows = 0;
    let bytes = 0;
    let upTo = 0;
    for (const { seq, bytes: own } of this.#oldestSizes.all()) {
      const isEnough = this.#rows - rows <= wanted.rows && this.#bytes - bytes <= wanted.bytes;
      if (isEnough || seq === this.#cursor) break;
      rows += 1;
      bytes += Number(own);
      upTo = Number(seq);
    }
    try {
      await this.#database.note(this.#forget, upTo);
      this.#rows -= rows;
      this.#bytes -= bytes;
    } catch {
      // The store has logged it. The next event triggers a retry.
    } finally {
      this.#isForgetting = false;
    }
  }
}

/** A sixteenth more than necessary is deleted, so that it is not repeated for each event. */
function lowered(bound: number): number {
  return bound - (bound >> 4);
}

function rowOf(row: Readonly<Record<string, unknown>>): FeedRow {
  const { seq, at, kind, state, session_id: sessionId, item_id: itemId, cwd, labels } = row;
  const id = kind === "session" ? {} : { [`${String(kind)}Id`]: itemId };
  const event = { seq, at, kind, state, sessionId, ...id } as FeedRow["event"];
  if (typeof cwd !== "string") return { event };
  if (typeof labels !== "string") return { event, scope: { cwd } };
  try {
    return { event, scope: { cwd, labels: JSON.parse(labels) as Labels } };
  } catch {
    // Only readers of all sessions receive a damaged row; it does not block later ones.
    return { event };
  }
}
