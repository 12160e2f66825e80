import { join } from "node:path";
import { deltas, largeRecord, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { openLoop } from "../lib/open-loop.ts";
import { RawClient } from "../lib/raw-client.ts";
import { Readers } from "../lib/readers.ts";
import { quantile, ratios } from "../lib/statistics.ts";

const everyMs = 2;
const seconds = 3;
const count = (seconds * 1_000) / everyMs;
const text = "x".repeat(240);

/** The effect of one session or client on others. */
export const neighbours: Figure = {
  title: "The latency of one session's requests, one due every 2 ms, while others are busy",
  goals: ["P7", "Q6"],
  repetitions: 5,
  measure: async (setting, resources) => {
    const alone = times();
    const large = await withLargeRecords(setting, resources, alone);
    const read = times();
    const unread = await withUnreadStream(setting, resources, read);
    return {
      rows: [
        { name: "p99 beside 8 MB/s / alone", unit: "x", values: ratios(large.p99, alone.p99), goals: ["P7"] },
        ...rowsOf("beside 8 MB/s in records of 8 MB", large).map(
          (row): Row => (row.name.startsWith("p99") ? { ...row, goals: ["Q6"] } : row),
        ),
        ...rowsOf("alone", alone),
        {
          name: "p99 beside a stream: with an unread client / without",
          unit: "x",
          values: ratios(unread.p99, read.p99),
        },
        ...rowsOf("beside a stream that one additional client never reads", unread),
        ...rowsOf("beside a stream that all read", read),
      ],
      notes: [
        `${count} requests for each value, counted from when each was due; the stream: 20,000 deltas a second`,
        "sent late: by this process, which counts as latency",
      ],
    };
  },
};

/** Milliseconds, for each repetition. */
interface Times {
  readonly p50: number[];
  readonly p99: number[];
  readonly max: number[];
  readonly late: number[];
}

const times = (): Times => ({ p50: [], p99: [], max: [], late: [] });

function rowsOf(name: string, { p50, p99, max, late }: Times): readonly Row[] {
  return [
    { name: `p50 ${name}`, unit: "ms", values: p50 },
    { name: `p99 ${name}`, unit: "ms", values: p99 },
    { name: `max ${name}`, unit: "ms", values: max },
    { name: `sent late, p99, ${name}`, unit: "ms", values: late },
  ];
}

/** A session that gets requests, and another whose child writes a record of 8 MB each second. */
async function withLargeRecords(setting: Setting, resources: Resources, alone: Times): Promise<Times> {
  const corpus = writeCorpus(join(setting.directory, "8m.jsonl"), [largeRecord(8_000_000)]);
  const { client, own, other, daemon } = await twoSessions(setting, resources);
  const readers = await Readers.start({ kind: "clients", daemon, sessions: [other], clients: 1 }, resources);
  const beside = times();
  for (let repetition = 0; repetition <= setting.repetitions; repetition += 1) {
    await timed(client, own, repetition === 0 ? times() : alone);
    const command = { type: "pace", file: corpus.file, start: 0, end: corpus.bytes, everyMs: 1_000, times: seconds };
    const written = client.request("session/command", { sessionId: other, command });
    await timed(client, own, repetition === 0 ? times() : beside);
    await written;
    await readers.received((repetition + 1) * seconds);
  }
  await daemon.stop();
  return beside;
}

/** A session that gets requests beside one that streams, with and without an additional client that does not read. */
async function withUnreadStream(setting: Setting, resources: Resources, read: Times): Promise<Times> {
  const corpus = writeCorpus(join(setting.directory, "stream.jsonl"), deltas(20));
  const { client, own, other, daemon } = await twoSessions(setting, resources);
  const task = { kind: "clients", daemon, sessions: [other], clients: 1 } as const;
  await Readers.start(task, resources);
  const stream = { type: "pace", file: corpus.file, start: 0, end: corpus.bytes, everyMs: 1, times: seconds * 1_000 };
  const unread = times();
  for (let repetition = 0; repetition <= setting.repetitions; repetition += 1) {
    for (const into of [read, unread]) {
      const reader = into === unread ? await Readers.start({ ...task, reads: false }, resources) : undefined;
      const streamed = client.request("session/command", { sessionId: other, command: stream });
      await timed(client, own, repetition === 0 ? times() : into);
      await streamed;
      await reader?.stop();
    }
  }
  return unread;
}

async function twoSessions(setting: Setting, resources: Resources) {
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
  const client = await RawClient.open(daemon, "unix", resources);
  const create = async (): Promise<string> =>
    (await client.request("session/create", { cwd: setting.directory })).sessionId;
  return { daemon, client, own: await create(), other: await create() };
}

async function timed(client: RawClient, sessionId: string, into: Times): Promise<void> {
  const command = { type: "get_echo", text };
  const request = () => client.request("session/command", { sessionId, command });
  const { latencies, lateness } = await within(60, `${count} answers`, openLoop(request, { everyMs, count }));
  into.p50.push(quantile(latencies, 0.5));
  into.p99.push(quantile(latencies, 0.99));
  into.max.push(Math.max(...latencies));
  into.late.push(quantile(lateness, 0.99));
}
