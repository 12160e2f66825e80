import { copyFileSync, existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { pino } from "pino";
import type { Delivery } from "../../protocol/delivery.ts";
import { DeliveryStore } from "../../server/store/deliveries.ts";
import { IdempotencyStore } from "../../server/store/idempotency.ts";
import { checkStore, type OpenStore, openStore } from "../../server/store/open-store.ts";
import { PromptStore, type StoredPrompt } from "../../server/store/prompts.ts";
import { RunStore } from "../../server/store/runs.ts";
import type { StoredSession } from "../../server/store/stored-session.ts";

/** The files of a store. */
const storeFiles = [
  "store.db",
  "store.db-wal",
  "store.db.copy",
  "store.changes",
  "store.changes.former",
  "store.mark",
  "sessions.jsonl",
] as const;

export function open(directory: string, options: Partial<Parameters<typeof openStore>[0]> = {}): OpenStore {
  const path = options.path ?? join(directory, "store.db");
  return openStore({
    path,
    found: checkStore(path),
    log: pino({ level: "silent" }),
    findSession: () => undefined,
    textsIn: () => new Set(),
    ...options,
  });
}

export function storedSession(sessionId: string, more: Partial<StoredSession> = {}): StoredSession {
  const file = `/nowhere/${sessionId}.jsonl`;
  const options = { tools: ["read"] };
  return { sessionId, cwd: "/", file, generation: 2, reservedSeq: 5, options, createdAt: 1, updatedAt: 1, ...more };
}

export function storedDelivery(deliveryId: string, sessionId: string, more: Partial<Delivery> = {}): Delivery {
  return {
    deliveryId,
    sessionId,
    state: "accepted",
    customType: "t",
    deliverAs: "steer",
    triggerTurn: true,
    attempts: [],
    history: [{ state: "accepted", at: 1 }],
    createdAt: 1,
    updatedAt: 1,
    ...more,
  };
}

export function storedPrompt(promptId: string, sessionId: string, more: Partial<StoredPrompt> = {}): StoredPrompt {
  const text = more.text ?? "text";
  return {
    promptId,
    sessionId,
    state: "stored",
    text,
    length: text.length,
    hash: "h",
    createdAt: 1,
    updatedAt: more.createdAt ?? 1,
    ...more,
  };
}

export function pushOf(deliveryId: string, content: string) {
  return {
    deliveryId,
    customType: "t",
    content,
    display: true,
    deliverAs: "steer",
    triggerTurn: true,
    onAbort: "park",
  } as const;
}

/** Three sessions, each with this many deliveries, of which every second is settled, a prompt, a call with a key, a run and an answer. */
export async function fillStore({ database, sessions }: OpenStore, deliveriesEach: number): Promise<void> {
  const deliveries = new DeliveryStore(database);
  const prompts = new PromptStore(database);
  const calls = new IdempotencyStore(database);
  for (const sessionId of ["s1", "s2", "s3"]) {
    await sessions.put(storedSession(sessionId));
    await prompts.add(storedPrompt(`p-${sessionId}`, sessionId, { text: `prompt of ${sessionId}` }));
    await calls.begin("m", `key of ${sessionId}`, { paramsHash: "h", subject: sessionId });
    await new RunStore(database).put(sessionId, { runId: `r-${sessionId}`, startedAt: 1, promptIds: [] });
    await sessions.answers.put(sessionId, `{"answer":"${sessionId}"}`);
    for (let i = 0; i < deliveriesEach; i += 1) {
      const delivery = storedDelivery(`d-${sessionId}-${i}`, sessionId);
      await deliveries.add({ push: pushOf(delivery.deliveryId, `content ${i} `.repeat(40)), delivery });
      if (i % 2 === 1) await deliveries.update({ ...delivery, state: "cancelled", settledAt: 2 }, true);
    }
  }
}

/** All rows that a rebuilt store must have, for comparison. Sessions continue with higher numbers. */
export function rowsIn(database: { prepare(sql: string): { all(): readonly object[] } }): readonly string[] {
  const tables = ["prompts", "deliveries", "runs", "dialogs", "closed_sessions", "last_answers", "summaries"];
  const columns = "session_id, cwd, file, json_remove(record, '$.reservedSeq') AS record, created_at, updated_at";
  const selects = tables.map((table) => `SELECT rowid, * FROM ${table}`);
  selects.push("SELECT * FROM idempotency", `SELECT ${columns} FROM sessions`);
  const rows = selects.flatMap((select) => database.prepare(select).all());
  return rows.map((row) => JSON.stringify(row)).sort();
}

/** The files that a killed daemon leaves of an open store. */
export function copyStore(from: string, to: string): string {
  mkdirSync(to, { recursive: true });
  for (const name of storeFiles) if (existsSync(join(from, name))) copyFileSync(join(from, name), join(to, name));
  return to;
}

/** The whole content of a store, for comparison. */
export function contents({ database, sessions }: OpenStore): ReadonlyMap<string, string> {
  const deliveries = new DeliveryStore(database);
  const prompts = new PromptStore(database);
  const all: [string, string][] = deliveries
    .list({ limit: 100_000 })
    .map(({ deliveryId }) => [deliveryId, JSON.stringify(deliveries.get(deliveryId))]);
  for (const { reservedSeq: _, ...session } of sessions.all()) {
    all.push([session.sessionId, JSON.stringify(session)]);
    for (const prompt of prompts.open(session.sessionId)) all.push([prompt.promptId, JSON.stringify(prompt)]);
  }
  return new Map(all);
}
