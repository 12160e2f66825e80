import { statSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import type { Delivery } from "../../protocol/delivery.ts";
import { limits } from "../../server/configuration/limits.ts";
import { DeliveryStore, type StoredPush } from "../../server/store/deliveries.ts";
import { type OpenStore, openStore } from "../../server/store/open-store.ts";
import type { Figure } from "../lib/figure.ts";

const deliveries = 20_000;
const contentBytes = 300;

/** The disk space of deliveries, and what remains after they are deleted. */
export const storeSize: Figure = {
  title: `The store's size: deliveries of ${contentBytes} bytes with all their receipts`,
  repetitions: 1,
  measure: async ({ directory }) => {
    const path = join(directory, "store.db");
    const log = pino({ level: "silent" });
    const store = openStore({ path, log, findSession: () => undefined, textsIn: () => new Set() });
    const rows = new DeliveryStore(store.database, limits.settled);
    const kibibytes = (): number => whole(store, path) / 1_024;
    const empty = kibibytes();
    for (let i = 0; i < deliveries; i += 1) await answered(rows, `bench-${i}`, i % 50 === 0);
    const full = kibibytes();
    await rows.expire(Date.now() + 1);
    const expired = kibibytes();
    await store.database.shrink(limits.maxShrinkPages);
    const shrunk = kibibytes();
    const startedAt = performance.now();
    store.close();
    openStore({ path, log, findSession: () => undefined, textsIn: () => new Set() }).close();
    return {
      rows: [
        { name: "for each 1,000 deliveries", unit: "KiB", values: [(full - empty) / (deliveries / 1_000)] },
        { name: "total, before they are deleted", unit: "KiB", values: [full] },
        { name: "total, after they are deleted", unit: "KiB", values: [expired] },
        { name: "total, after free pages were returned", unit: "KiB", values: [shrunk] },
        { name: "closing, checking and reopening the store", unit: "ms", values: [performance.now() - startedAt] },
      ],
      notes: [`${deliveries} deliveries; the size includes the WAL`],
    };
  },
};

function whole({ database }: OpenStore, path: string): number {
  database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
  return statSync(path).size + statSync(`${path}-wal`).size;
}

/** Six states, each written as the daemon writes it. */
async function answered(store: DeliveryStore, deliveryId: string, wait: boolean): Promise<void> {
  const push: StoredPush = {
    deliveryId,
    customType: "bench",
    content: "x".repeat(contentBytes),
    display: true,
    deliverAs: "steer",
    triggerTurn: true,
    onAbort: "park",
  };
  const at = Date.now();
  let delivery: Delivery = {
    deliveryId,
    sessionId: `0199e0a0-0000-7000-8000-00000000000${deliveryId.length % 10}`,
    state: "accepted",
    customType: "bench",
    deliverAs: "steer",
    triggerTurn: true,
    attempts: [],
    history: [{ state: "accepted", at }],
    createdAt: at,
    updatedAt: at,
  };
  void store.add({ push, delivery });
  let last = Promise.resolve();
  const requestId = "0199e0a0-0000-7000-8000-000000000000";
  for (const state of ["held", "inserted", "prepared", "delivered", "answered"] as const) {
    const attempts: Delivery["attempts"] =
      state === "held" || state === "inserted"
        ? []
        : [{ requestId, n: 1, preparedAt: at, payload: "confirmed", outcome: "delivered", endedAt: at, status: 200 }];
    delivery = { ...delivery, state, attempts, history: [...delivery.history, { state, at, requestId }] };
    last = store.update(delivery, state === "answered");
  }
  if (wait) await last;
}
