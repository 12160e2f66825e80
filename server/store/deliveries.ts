import type { Delivery } from "../../protocol/delivery.ts";
import type { HeldPush } from "../../protocol/link.ts";
import type { Database } from "./database.ts";

/** A delivery and the push that it is about. */
export interface StoredDelivery {
  readonly push: HeldPush;
  readonly delivery: Delivery;
}

export class DeliveryStore {
  readonly #database: Database;
  readonly #insert;
  readonly #update;
  readonly #get;
  readonly #open;
  readonly #expire;

  constructor(database: Database) {
    this.#database = database;
    this.#insert = database.prepare(
      "INSERT INTO deliveries (delivery_id, session_id, settled, push, record, created_at) VALUES (?, ?, 0, ?, ?, ?)",
    );
    this.#update = database.prepare("UPDATE deliveries SET settled = ?, record = ? WHERE delivery_id = ?");
    this.#get = database.prepare("SELECT push, record FROM deliveries WHERE delivery_id = ?");
    this.#expire = database.prepare("DELETE FROM deliveries WHERE settled = 1 AND created_at < ?");
    this.#open = database.prepare(
      "SELECT push, record FROM deliveries WHERE settled = 0 ORDER BY created_at, delivery_id",
    );
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

  get(deliveryId: string): StoredDelivery | undefined {
    const row = this.#get.get(deliveryId);
    return row === undefined ? undefined : parse(row);
  }

  /** Those that may still change, the oldest first. */
  open(): readonly StoredDelivery[] {
    return this.#open.all().map(parse);
  }
}

function parse(row: Readonly<Record<string, unknown>>): StoredDelivery {
  return {
    push: JSON.parse(row["push"] as string) as HeldPush,
    delivery: JSON.parse(row["record"] as string) as Delivery,
  };
}
