import type { Delivery, DeliveryState } from "../../protocol/delivery.ts";
import type { HeldPush } from "../../protocol/link.ts";
import type { Database } from "./database.ts";

/** What is kept of a push: what the helper needs, and what the daemon itself sees to. */
export interface StoredPush extends HeldPush {
  /** Absent: it is kept. */
  readonly onClearQueue?: "drop";
  readonly expiresAfterMs?: number;
}

/** A delivery and the push that it is about. */
export interface StoredDelivery {
  readonly push: StoredPush;
  readonly delivery: Delivery;
}

export interface DeliveryQuery {
  readonly sessionId?: string | undefined;
  readonly states?: readonly DeliveryState[] | undefined;
  readonly limit: number;
  readonly behind?: Delivery | undefined;
}

export class DeliveryStore {
  readonly #database: Database;
  readonly #insert;
  readonly #update;
  readonly #get;
  readonly #open;
  readonly #expire;
  readonly #list;
  readonly #listOf;

  constructor(database: Database) {
    this.#database = database;
    this.#insert = database.prepare(
      "INSERT INTO deliveries (delivery_id, session_id, settled, push, record, created_at) VALUES (?, ?, 0, ?, ?, ?)",
    );
    this.#update = database.prepare("UPDATE deliveries SET settled = ?, record = ? WHERE delivery_id = ?");
    this.#get = database.prepare("SELECT push, record FROM deliveries WHERE delivery_id = ?");
    this.#expire = database.prepare("DELETE FROM deliveries WHERE settled = 1 AND created_at < ?");
    this.#list = database.prepare(page(""));
    this.#listOf = database.prepare(page("session_id = ?5 AND"));
    this.#open = database.prepare(
      "SELECT push, record FROM deliveries WHERE settled = 0 ORDER BY created_at, delivery_id",
    );
  }

  /** The newest first, from behind the given one on. */
  list({ sessionId, states, limit, behind }: DeliveryQuery): readonly Delivery[] {
    this.#database.flush();
    const inOne = sessionId === undefined ? [] : [sessionId];
    const rows = (sessionId === undefined ? this.#list : this.#listOf).all(
      states === undefined ? null : JSON.stringify(states),
      behind?.createdAt ?? Number.MAX_SAFE_INTEGER,
      behind?.deliveryId ?? "",
      limit,
      ...inOne,
    );
    return rows.map((row) => JSON.parse(row["record"] as string) as Delivery);
  }

  /** Forgets what was settled before the given time, in Unix milliseconds. */
  expire(before: number): Promise<void> {
    return this.#database.write(this.#expire, before);
  }

  /** Resolves when it is on disk. */
  add({ push, delivery }: StoredDelivery): Promise<void> {
    return this.#database.write(
      this.#insert,
      delivery.deliveryId,
      delivery.sessionId,
      JSON.stringify(push),
      JSON.stringify(delivery),
      delivery.createdAt,
    );
  }

  update(delivery: Delivery, settled: boolean): Promise<void> {
    return this.#database.write(this.#update, settled ? 1 : 0, JSON.stringify(delivery), delivery.deliveryId);
  }

  /** Brings to disk, now, what was added and updated. */
  flush(): void {
    this.#database.flush();
  }

  get(deliveryId: string): StoredDelivery | undefined {
    const row = this.#get.get(deliveryId);
    return row === undefined ? undefined : parse(row);
  }

  /** Those that may still change, the oldest first. */
  open(): readonly StoredDelivery[] {
    return this.#open.all().map(parse);
  }
}

function page(condition: string): string {
  return `SELECT record FROM deliveries
    WHERE ${condition} (?1 IS NULL OR json_extract(record, '$.state') IN (SELECT value FROM json_each(?1)))
      AND (created_at, delivery_id) < (?2, ?3)
    ORDER BY created_at DESC, delivery_id DESC LIMIT ?4`;
}

function parse(row: Readonly<Record<string, unknown>>): StoredDelivery {
  return {
    push: JSON.parse(row["push"] as string) as StoredPush,
    delivery: JSON.parse(row["record"] as string) as Delivery,
  };
}
