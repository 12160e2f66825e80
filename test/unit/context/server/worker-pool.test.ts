import { pino } from "pino";
import { expect, test } from "vitest";
import { defaultContextLimits } from "../../../../protocol/context-limits.ts";
import { perform } from "../../../../server/context/perform.ts";
import type { ExportWork, PrepareWork } from "../../../../server/context/work.ts";
import { WorkerPool, type WorkerPoolLimits } from "../../../../server/context/worker-pool.ts";

const { signal } = new AbortController();
const limits = { maxOwnBytes: 1_000, maxThreads: 1, maxWaiting: 4, workTimeoutMs: 60_000, maxThreadMiB: 512 };

function pool(more: Partial<WorkerPoolLimits> = {}): WorkerPool {
  return new WorkerPool({ ...limits, ...more }, pino({ level: "silent" }));
}

function prepare(further: string): PrepareWork {
  const text = `{"format":"pi-rpcd/context","version":1,"items":[{"role":"user","content":"a","timestamp":1}],"x":${further}}`;
  const bytes = Buffer.from(new ArrayBuffer(Buffer.byteLength(text)));
  bytes.write(text);
  return {
    kind: "prepare",
    source: { kind: "document", bytes },
    options: { until: "through" } as PrepareWork["options"],
    target: { api: "fake-messages", provider: "fake", id: "model", takesImages: false },
    budget: null,
    limits: defaultContextLimits,
    as: { kind: "facts" },
  };
}

const large = () => prepare(`"${"y".repeat(2_000)}"`);

test("small documents are processed immediately, and the bytes of larger ones are given to a thread", async () => {
  const work = pool();
  const small = prepare('"y"');
  await work.do(small, signal);
  expect(small.source.bytes.byteLength).toBeGreaterThan(0);
  const given = large();
  const { facts } = await work.do(given, signal);
  expect(facts.messages).toBe(1);
  // They are where the work was done.
  expect(given.source.bytes.byteLength).toBe(0);
});

test("an ephemeral session's past and its pi's entries are joined in the thread", async () => {
  const helper = perform({ ...large(), as: { kind: "helper", afterCompaction: "trim" } });
  const { bytes, facts } = helper;
  const message = { role: "user", content: [{ type: "text", text: "z".repeat(2_000) }], timestamp: 2 };
  const entry = { type: "message", id: "aaaaaaaa", parentId: null, timestamp: "2026-01-01T00:00:00.000Z", message };
  const own = Buffer.from(new ArrayBuffer(JSON.stringify(entry).length + 1));
  own.write(`${JSON.stringify(entry)}\n`);
  const from = { kind: "session", bytes: own, kept: bytes, leafId: entry.id, source: { kind: "pi-session" } } as const;
  const work: ExportWork = { kind: "export", from, options: {} };
  const made = await pool().do(work, signal);
  expect(own.byteLength).toBe(0);
  const { items } = JSON.parse(Buffer.from(made.bytes).toString("utf8"));
  expect([facts.messages, items.length]).toEqual([1, 2]);
  expect(items[1].content).toMatchObject([{ text: "z".repeat(2_000) }]);
});

test("a document with more values than a thread has memory for is refused before it is parsed", async () => {
  const many = pool({ maxThreadMiB: 12 });
  const shapes = [`[${"{},".repeat(1_000_000)}1]`, `{${'"k":1,'.repeat(500_000)}"k":1}`, "[".repeat(1_000_000)];
  for (const shape of shapes) {
    const refused = many.do(prepare(shape), signal);
    await expect(refused).rejects.toMatchObject({ kind: "context_too_large", data: { limit: "work" } });
    await expect(refused).rejects.toThrow(/keys, values and commas/);
  }
  // Brackets inside texts do not count.
  expect((await many.do(prepare(JSON.stringify('{},\\"'.repeat(50_000))), signal)).facts.messages).toBe(1);
});

test("work that takes too long is aborted, and further work is overloaded if too much waits", async () => {
  await expect(pool({ workTimeoutMs: 1 }).do(large(), signal)).rejects.toMatchObject({
    kind: "context_too_large",
    message: "The context takes more than 0.001 s to be prepared.",
  });
  const full = pool({ maxWaiting: 2 });
  const outcomes = await Promise.allSettled([1, 2, 3].map(() => full.do(large(), signal)));
  expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "fulfilled", "rejected"]);
  expect(outcomes[2]).toMatchObject({ reason: { kind: "overloaded" } });
  // Capacity is available again.
  expect((await full.do(large(), signal)).facts.messages).toBe(1);
});
