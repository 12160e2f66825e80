import type { Delivery, DeliveryState } from "../../protocol/delivery.ts";
import type { HeldPush } from "../../protocol/link-inward.ts";
import { type Database, maxCloseMs } from "./database.ts";
import { steadyNow } from "./retention-clock.ts";
import { checksumOf, isSound } from "./sums.ts";

/** The stored part of a push: for the helper and for the daemon. */
export interface StoredPush extends HeldPush {
  /** Absent: it is kept. */
  readonly onClearQueue?: "drop";
  readonly expiresAfterMs?: number;
}

/** A delivery and its push. */
export interface StoredDelivery {
  readonly push: StoredPush;
  readonly delivery: Delivery;
}

export interface DeliveryQuery {
  readonly sessionIds?: readonly string[] | undefined;
  readonly states?: readonly DeliveryState[] | undefined;
  readonly limit: number;
  readonly before?: Delivery | undefined;
}

/** Limits on stored settled deliveries. */
export interface SettledBounds {
  readonly maxSettled: number;
  readonly maxSettledBytes: number;
}

/** The limits are checked each time this fraction of them was added. */
const share = 16;

export class DeliveryStore {
  readonly #database: Database;
  readonly #insert;
  readonly #update;
  readonly #get;
  readonly #open;
  readonly #expire;
  readonly #excess;
  readonly #settledTotal;
  readonly #list;
  readonly #listOf;

  readonly #bounds: SettledBounds;
  readonly #now: () => number;
  #addedSince = 0;
  #bytesSince = 0;

  /** `now`: the time from which the age of settled deliveries is counted. */
  constructor(database: Database, bounds: Partial<SettledBounds> = {}, now = steadyNow) {
    this.#database = database;
    this.#now = now;
    this.#bounds = {
      maxSettled: Number.MAX_SAFE_INTEGER,
      maxSettledBytes: Number.MAX_SAFE_INTEGER,
      ...bounds,
    };
    this.#insert = database.prepare(
      `INSERT INTO deliveries
         (delivery_id, session_id, settled, push, record, created_at, push_sum, record_sum, bytes)
       VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7, octet_length(?3) + octet_length(?4))`,
    );
    this.#update = database.prepare(
      `UPDATE deliveries SET settled = ?2, settled_at = ?3, record = ?4, record_sum = ?5,
         bytes = octet_length(push) + octet_length(?4) WHERE delivery_id = ?1`,
    );
    this.#get = database.prepare(`SELECT ${columns} FROM deliveries WHERE delivery_id = ?`);
    this.#expire = database.prepare("DELETE FROM deliveries WHERE settled = 1 AND settled_at < ?");
    this.#settledTotal = database.prepare(
      "SELECT count(*) AS number, total(bytes) AS bytes FROM deliveries INDEXED BY deliveries_settled WHERE settled = 1",
    );
    this.#excess = database.prepare(
      `DELETE FROM deliveries WHERE settled = 1 AND number IN (
         SELECT number FROM (
           SELECT number, row_number() OVER newest AS nth, sum(bytes) OVER newest AS total
           FROM deliveries INDEXED BY deliveries_settled WHERE settled = 1
           WINDOW newest AS (ORDER BY settled_at DESC, number DESC)
         ) WHERE nth > ? OR total > ?)`,
    );
    this.#list = database.prepare(page(""));
    this.#listOf = database.prepare(page("session_id IN (SELECT value FROM json_each(?4)) AND"));
    this.#open = database.prepare(`SELECT ${columns} FROM deliveries WHERE settled = 0 ORDER BY number`);
  }

  /** Newest first, accepted before the delivery `before`. */
  list({ sessionIds, states, limit, before }: DeliveryQuery): readonly Delivery[] {
    const inThese = sessionIds === undefined ? [] : [JSON.stringify(sessionIds)];
    const rows = (sessionIds === undefined ? this.#list : this.#listOf).all(
      states === undefined ? null : JSON.stringify(states),
      before?.deliveryId ?? null,
      limit,
      ...inThese,
    );
    return rows.map((row) => parse(row).delivery);
  }

  /** Deletes deliveries that were settled before the given time, in Unix milliseconds. */
  expire(before: number): Promise<void> {
    return this.#database.write(this.#expire, before);
  }

  /** Deletes the oldest settled ones beyond the limits. */
  limit(): Promise<void> {
    this.#addedSince = 0;
    this.#bytesSince = 0;
    const { maxSettled, maxSettledBytes } = this.#bounds;
    const { number, bytes } = this.#settledTotal.get() ?? {};
    if (Number(number) <= maxSettled && Number(bytes) <= maxSettledBytes) return Promise.resolve();
    return this.#database.write(this.#excess, maxSettled, maxSettledBytes);
  }

  /** Resolves when it is on disk. Rejects with `store_failed`; then nothing is stored. */
  add({ push, delivery }: StoredDelivery): Promise<void> {
    const pushText = JSON.stringify(push);
    const record = JSON.stringify(delivery);
    const { deliveryId, sessionId, createdAt } = delivery;
    this.#count(pushText.length + record.length);
    return this.#database.write(
      this.#insert,
      deliveryId,
      sessionId,
      pushText,
      record,
      createdAt,
      checksumOf(pushText),
      checksumOf(record),
    );
  }

  /**
   * Resolves when it is on disk, unsynced before the first request: a later daemon finds out from the session file
   * whether the push is inserted. When it rejects, it is retried as soon as the store works again.
   */
  update(delivery: Delivery, settled: boolean): Promise<void> {
    const record = JSON.stringify(delivery);
    const { deliveryId } = delivery;
    const key = `delivery ${deliveryId}`;
    const values = [deliveryId, settled ? 1 : 0, settled ? this.#now() : null, record, checksumOf(record)] as const;
    return isOnTheWay(delivery)
      ? this.#database.keepUnsynced(key, this.#update, ...values)
      : this.#database.keep(key, this.#update, ...values);
  }

  /** Commits additions and updates at the end of this turn of the event loop. */
  commitSoon(): void {
    this.#database.commitSoon();
  }

  /** Resolves when additions and updates so far are on disk, or have failed. */
  written(): Promise<void> {
    return this.#database.written();
  }

  /** Writes and syncs now, blocking the event loop: for the end of a daemon. */
  flush(): void {
    this.#database.flush(maxCloseMs);
  }

  #count(bytes: number): void {
    this.#addedSince += 1;
    this.#bytesSince += bytes;
    const { maxSettled, maxSettledBytes } = this.#bounds;
    if (this.#addedSince > maxSettled / share || this.#bytesSince > maxSettledBytes / share) void this.limit();
  }

  get(deliveryId: string): StoredDelivery | undefined {
    const row = this.#get.get(deliveryId);
    return row === undefined ? undefined : parse(row);
  }

  /** The open ones, in order of acceptance. */
  open(): readonly StoredDelivery[] {
    return this.#open.all().map(parse);
  }
}

/** A push that a client has resent is not: the transcript does not show that it is no longer parked. */
function isOnTheWay({ state, attempts, history }: Delivery): boolean {
  if (attempts.length > 0 || history.some((step) => step.state === "parked")) return false;
  return state === "accepted" || state === "held" || state === "inserted";
}

const columns = "push, record, push_sum AS pushSum, record_sum AS recordSum";

function page(condition: string): string {
  return `SELECT ${columns} FROM deliveries
    WHERE ${condition} (?1 IS NULL OR json_extract(record, '$.state') IN (SELECT value FROM json_each(?1)))
      AND number < CASE WHEN ?2 IS NULL THEN ${Number.MAX_SAFE_INTEGER}
        ELSE (SELECT number FROM deliveries WHERE delivery_id = ?2) END
    ORDER BY number DESC LIMIT ?3`;
}

/** Throws if the row differs from what was written. */
function parse(row: Readonly<Record<string, unknown>>): StoredDelivery {
  const { push, record, pushSum, recordSum } = row;
  if (!isSound(push, pushSum) || !isSound(record, recordSum)) throw new Error("A delivery in the store is damaged.");
  return { push: JSON.parse(push) as StoredPush, delivery: JSON.parse(record) as Delivery };
}
