import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { SeqNumbers } from "../../../server/core/seq-numbers.ts";
import { EventBackfill } from "../../../server/log/event-backfill.ts";
import type { EventLog } from "../../../server/log/event-log.ts";
import { takeSnapshot } from "../../../server/log/snapshot.ts";
import { memoryLog, memoryStore, reserveFrom } from "../../helpers/logs.ts";

const header = { type: "session", version: 3, id: "s-1", timestamp: "2026-01-01T00:00:00.000Z", cwd: "/" };

function message(n: number, role = "user") {
  return { role, content: [{ type: "text", text: `m${n}` }], timestamp: 1_000 + n };
}

function entry(n: number, more: object = { type: "message", message: message(n) }) {
  return { id: `id${n}`, parentId: n === 1 ? null : `id${n - 1}`, timestamp: "2026-01-01T00:00:01.000Z", ...more };
}

function sessionFile(...entries: readonly object[]): string {
  const directory = mkdtempSync(join(tmpdir(), "backfill-"));
  onTestFinished(() => rmSync(directory, { recursive: true }));
  const file = join(directory, "session.jsonl");
  writeFileSync(file, [header, ...entries].map((line) => `${JSON.stringify(line)}\n`).join(""));
  return file;
}

function backfillOf(log: EventLog): { backfill: EventBackfill; told: () => unknown[]; event: (event: object) => void } {
  const records: string[] = [];
  const backfill = new EventBackfill({
    log,
    record: (record) => {
      records.push(record.toString("utf8"));
      log.appendEvent(record, 1, false);
    },
    maxBytes: 1 << 20,
    logger: pino({ level: "silent" }),
  });
  const event = (one: object): void => {
    log.appendEvent(Buffer.from(JSON.stringify(one)), 1, false);
    backfill.note(one as { type: string });
  };
  return { backfill, event, told: () => records.map((record) => JSON.parse(record).entry) };
}

test("entries of the file after the newest message of the log are reported once", async () => {
  const custom = { type: "custom_message", customType: "note", content: "pushed", display: true, details: { id: 1 } };
  const file = sessionFile(entry(1), entry(2, custom), entry(3), entry(4, { type: "compaction", summary: "…" }));
  const { backfill, event, told } = backfillOf(memoryLog());
  event({ type: "message_end", message: message(1) });
  event({ type: "message_end", message: { ...custom, type: undefined, role: "custom", timestamp: 5 } });
  await backfill.run(file);
  expect(told()).toEqual([entry(3), entry(4, { type: "compaction", summary: "…" })]);
  await backfill.run(file);
  appendFileSync(file, `${JSON.stringify(entry(5))}\n{"torn":`);
  await backfill.run(file);
  expect(told()).toHaveLength(3);
  expect(told().at(-1)).toEqual(entry(5));
});

test("of two identical custom messages the second is reported, whichever daemon reported the first", async () => {
  const custom = { type: "custom_message", customType: "note", content: "pushed", display: true };
  const file = sessionFile(entry(1), entry(2, custom), entry(3), entry(4, custom), entry(5, custom));
  const store = memoryStore();
  const log = memoryLog({ store });
  const { backfill, event, told } = backfillOf(log);
  const said = { type: "message_end", message: { ...custom, type: undefined, role: "custom", timestamp: 5 } };
  event({ type: "message_end", message: message(1) });
  event(said);
  event({ type: "message_end", message: message(3) });
  event(said);
  await log.persist();
  const later = backfillOf(memoryLog({ store, numbers: new SeqNumbers(reserveFrom(log.cursor)) }));
  await later.backfill.run(file);
  expect(later.told()).toEqual([entry(5, custom)]);
  await backfill.run(file);
  expect(told()).toEqual([entry(5, custom)]);
  await backfill.run(file);
  expect(told()).toHaveLength(1);
});

test("another daemon learns the log's content from the store", async () => {
  const store = memoryStore();
  const first = memoryLog({ store });
  const { event } = backfillOf(first);
  for (let i = 1; i <= 3; i += 1) event({ type: "message_end", message: message(i) });
  await first.persist();
  const second = memoryLog({ store, numbers: new SeqNumbers(reserveFrom(first.cursor + 10)) });
  const { backfill, told } = backfillOf(second);
  const file = sessionFile(...[1, 2, 3, 4].map((n) => entry(n)));
  await backfill.run(file);
  expect(told()).toEqual([entry(4)]);
  await second.persist();
  const third = backfillOf(memoryLog({ store, numbers: new SeqNumbers(reserveFrom(second.cursor + 10)) }));
  await third.backfill.run(file);
  expect(third.told()).toEqual([]);
});

test("a log that is lost is started again from the whole file", async () => {
  const { backfill, told } = backfillOf(memoryLog({ numbers: new SeqNumbers(reserveFrom(500)) }));
  const entries = Array.from({ length: 400 }, (_, i) =>
    entry(i + 1, { type: "message", message: message(i + 1), pad: "x".repeat(1_000) }),
  );
  await backfill.run(sessionFile(...entries));
  expect(told()).toEqual(entries);
});

test("nothing is reported for a missing file", async () => {
  const { backfill, told } = backfillOf(memoryLog());
  await backfill.run("/nowhere/session.jsonl");
  expect(told()).toEqual([]);
});

test("a snapshot is the branch to the leaf, with the entries that replace messages, and without its oldest when it is too large", async () => {
  const file = sessionFile(
    entry(1),
    entry(2, { type: "model_change", provider: "p", modelId: "m" }),
    entry(3, { type: "message", message: message(3), parentId: "id2" }),
    entry(4, { type: "branch_summary", parentId: "id2", fromId: "id3", summary: "left" }),
    entry(5, { type: "compaction", summary: "short", tokensBefore: 9 }),
    entry(6),
  );
  const info = () => ({ cursor: 7 }) as never;
  const { snapshot } = await takeSnapshot({ child: undefined, file, info, maxBytes: 1 << 20 });
  const timestamp = Date.parse("2026-01-01T00:00:01.000Z");
  expect(snapshot).toEqual({
    leafId: "id6",
    messages: [
      message(1),
      { role: "branchSummary", summary: "left", fromId: "id3", timestamp },
      { role: "compactionSummary", summary: "short", tokensBefore: 9, timestamp },
      message(6),
    ],
  });
  const small = await takeSnapshot({ child: undefined, file, info, maxBytes: 200 });
  expect(small.snapshot.messages.length + (small.snapshot.omitted ?? 0)).toBeLessThanOrEqual(4);
  expect(small.snapshot.messages.at(-1)).toEqual(message(6));
});
