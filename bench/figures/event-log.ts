import { statSync } from "node:fs";
import { join } from "node:path";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { pino } from "pino";
import { limits } from "../../server/configuration/limits.ts";
import { MemoryBudget } from "../../server/core/memory-budget.ts";
import { SeqNumbers } from "../../server/core/seq-numbers.ts";
import { EventLog } from "../../server/log/event-log.ts";
import { EventStore } from "../../server/store/events.ts";
import { openStore } from "../../server/store/open-store.ts";
import { deltas } from "../lib/corpus.ts";
import type { Figure, Setting } from "../lib/figure.ts";
import { memoryOf } from "../lib/process-usage.ts";

const retainedBytes = 128 * 1024 * 1024;
const turns = 400;
const deltasPerTurn = 100;

/** The memory and disk space of a session's log. */
export const eventLog: Figure = {
  title: "A session's log: its memory, and its growth on disk",
  repetitions: 1,
  measure: async (setting) => {
    const { ratio, share } = fill(setting);
    const { events, bytes, cpuMs, readMs } = await store(setting);
    return {
      rows: [
        {
          name: "memory for each retained byte of records",
          unit: "x",
          values: [ratio],
          goal: { id: "P12", sense: "at most", target: 1.5, stretch: 1.3 },
        },
        { name: "memory / its limit", unit: "x", values: [share] },
        { name: "on disk for each 1,000 events", unit: "KiB", values: [bytes / 1_024 / (events / 1_000)] },
        { name: "CPU to pack 1,000 events for the disk", unit: "us", values: [(cpuMs * 1_000) / (events / 1_000)] },
        { name: "reading all of them from the disk", unit: "rec/s", values: [events / (readMs / 1_000)] },
      ],
      notes: [
        `memory: deltas of some 344 bytes, up to ${retainedBytes / 1_048_576} MiB`,
        `disk: ${events} events, of which ${turns * deltasPerTurn} are deltas, in turns with 2 to 12 KB of random words`,
      ],
    };
  },
};

function logOf(store: EventStore, maxRetainedBytes: number): EventLog {
  const reserve = { reserved: 0, reserve: () => Promise.resolve(), flush: () => true };
  return new EventLog({
    sessionId: "01920000-0000-7000-8000-000000000001",
    numbers: new SeqNumbers(reserve),
    maxRetainedBytes,
    budget: new MemoryBudget(limits.log.maxRetainedBytesInAll),
    store,
    maxStoredFrameBytes: limits.log.maxStoredEventBytes,
    onDurable: () => {},
  });
}

function open(path: string): { events: EventStore; close: () => void; bytes: () => number } {
  const log = pino({ level: "silent" });
  const store = openStore({ path, log, findSession: () => undefined, textsIn: () => new Set() });
  return {
    events: new EventStore(store.database, limits.storedEvents),
    close: () => store.close(),
    bytes: () => {
      store.database.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get();
      return statSync(path).size;
    },
  };
}

function fill({ directory }: Setting): { ratio: number; share: number } {
  const store = open(join(directory, "memory.db"));
  const log = logOf(store.events, retainedBytes);
  const records = [...deltas(50_000)].map((record) => Buffer.from(record));
  const fillTo = (bytes: number): number => {
    let raw = 0;
    for (let i = 0; log.retainedBytes < bytes; i += 1) {
      const record = records[i % records.length] as Buffer;
      log.appendEvent(record, 1, true);
      raw += record.length;
    }
    return raw;
  };
  // By then the heap of the process has reached its base size.
  fillTo(retainedBytes / 4);
  const before = settledMiB();
  const raw = fillTo(retainedBytes - 2 * 1024 * 1024);
  const after = settledMiB();
  for (const record of records) log.appendEvent(record, 1, true);
  const share = log.retainedBytes / retainedBytes;
  store.close();
  return { ratio: ((after - before) * 1_048_576) / raw, share };
}

/** Without memory that waits for garbage collection. */
function settledMiB(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  for (let i = 0; i < 3; i += 1) collect();
  return memoryOf(process.pid)?.residentMiB ?? Number.NaN;
}

async function store({
  directory,
}: Setting): Promise<{ events: number; bytes: number; cpuMs: number; readMs: number }> {
  const store = open(join(directory, "disk.db"));
  const log = logOf(store.events, limits.maxRetainedEventBytes);
  const empty = store.bytes();
  const random = randomWords();
  const stream = [...deltas(deltasPerTurn)].map((record) => Buffer.from(record));
  let cpuMs = 0;
  for (let turn = 0; turn < turns; turn += 1) {
    const say = (type: string, more: object = {}): void =>
      void log.appendEvent(Buffer.from(JSON.stringify({ type, ...more })), 1, false);
    const message = { role: "assistant", content: [{ type: "text", text: random(300 + ((turn * 37) % 1_500)) }] };
    const result = { role: "toolResult", toolCallId: `t${turn}`, content: [{ type: "text", text: random(200) }] };
    say("turn_start");
    say("message_start", { message: { ...message, content: [] } });
    for (const record of stream) log.appendEvent(record, 1, true);
    say("message_end", { message });
    say("tool_execution_start", { toolCallId: `t${turn}`, toolName: "bash", args: { command: random(8) } });
    say("tool_execution_end", { toolCallId: `t${turn}`, toolName: "bash", result, isError: false });
    say("message_start", { message: result });
    say("message_end", { message: result });
    say("turn_end", { message, toolResults: [result] });
    const before = process.cpuUsage();
    await log.persist();
    const { user, system } = process.cpuUsage(before);
    cpuMs += (user + system) / 1_000;
  }
  const bytes = store.bytes() - empty;
  log.close();
  const startedAt = performance.now();
  for (let after = 0; after < log.cursor; ) after = log.read(after, 1_048_576).upTo;
  const readMs = performance.now() - startedAt;
  store.close();
  return { events: log.cursor, bytes, cpuMs, readMs };
}

/** Texts that compress like prose. */
function randomWords(): (count: number) => string {
  let state = 1;
  const next = (): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 4_294_967_296;
  };
  const words = Array.from({ length: 3_000 }, () =>
    Math.floor(next() * 36 ** 6)
      .toString(36)
      .slice(0, 2 + Math.floor(next() * 7)),
  );
  return (count) => Array.from({ length: count }, () => words[Math.floor(next() ** 2 * words.length)]).join(" ");
}
