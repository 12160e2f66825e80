import { join } from "node:path";
import { deltas, largeRecord, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Setting } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { Readers } from "../lib/readers.ts";
import { median, quantile, ratios } from "../lib/statistics.ts";

const rounds = 1_500;
const text = "x".repeat(240);

/** The effect of one session or client on others. */
export const neighbours: Figure = {
  title: "The latency of one session's requests while others are busy",
  repetitions: 5,
  measure: async (setting, resources) => {
    const large = await withLargeRecords(setting, resources);
    const unread = await withUnreadStream(setting, resources);
    return {
      rows: [
        {
          name: "p99 with 8 MB/s in records of 8 MB / alone",
          unit: "x",
          values: ratios(large.p99, large.alone.p99),
          goal: { id: "P7", sense: "at most", target: 60, stretch: 20 },
        },
        {
          name: "p99 with 8 MB/s in records of 8 MB",
          unit: "ms",
          values: large.p99.map((us) => us / 1_000),
          goal: { id: "P7", sense: "at most", target: 30, stretch: 10 },
        },
        { name: "p50 with 8 MB/s in records of 8 MB", unit: "us", values: large.p50 },
        { name: "p99 alone", unit: "us", values: large.alone.p99 },
        {
          name: "p99 with a stream that one additional client never reads / that all read",
          unit: "x",
          values: ratios(unread.p99, unread.alone.p99),
          goal: { id: "slow readers", sense: "at most", target: 1.5 },
        },
        { name: "p99 with a stream that all read", unit: "us", values: unread.alone.p99 },
      ],
      notes: [`${rounds} requests for each value, one at a time; the stream: 20,000 deltas a second`],
    };
  },
};

interface Times {
  readonly p50: number[];
  readonly p99: number[];
}

type Compared = Times & { readonly alone: Times };

/** A session that gets requests, and another whose child writes a record of 8 MB each second. */
async function withLargeRecords(setting: Setting, resources: Resources): Promise<Compared> {
  const corpus = writeCorpus(join(setting.directory, "8m.jsonl"), [largeRecord(8_000_000)]);
  const [burst] = corpus.bursts;
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
  const client = await RawClient.open(daemon, "unix", resources);
  const create = async (): Promise<string> =>
    (await client.request("session/create", { cwd: setting.directory })).sessionId;
  const [own, other] = [await create(), await create()];
  const readers = await Readers.start({ kind: "clients", daemon, sessions: [other], clients: 1 }, resources);
  await readers.received();
  const alone = times();
  const beside = times();
  for (let repetition = 0; repetition <= setting.repetitions; repetition += 1) {
    await timed(client, own, alone);
    const command = { type: "pace", file: corpus.file, start: 0, end: burst?.end ?? 0, everyMs: 1_000, times: 4 };
    const written = client.request("session/command", { sessionId: other, command });
    await timed(client, own, beside, written);
  }
  return { ...withoutFirst(beside), alone: withoutFirst(alone) };
}

/**
 * A session that gets requests, and another that streams to a client; with and without an additional client that does
 * not read.
 */
async function withUnreadStream(setting: Setting, resources: Resources): Promise<Compared> {
  const corpus = writeCorpus(join(setting.directory, "stream.jsonl"), deltas(20));
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
  const client = await RawClient.open(daemon, "unix", resources);
  const create = async (): Promise<string> =>
    (await client.request("session/create", { cwd: setting.directory })).sessionId;
  const [own, other] = [await create(), await create()];
  const task = { kind: "clients", daemon, sessions: [other], clients: 1 } as const;
  await Readers.start(task, resources);
  const command = { type: "pace", file: corpus.file, start: 0, end: corpus.bytes, everyMs: 1, times: 3_000 };
  const alone = times();
  const beside = times();
  for (let repetition = 0; repetition <= setting.repetitions; repetition += 1) {
    await timed(client, own, alone, client.request("session/command", { sessionId: other, command }));
    const unread = await Readers.start({ ...task, reads: false }, resources);
    await timed(client, own, beside, client.request("session/command", { sessionId: other, command }));
    await unread.stop();
  }
  return { ...withoutFirst(beside), alone: withoutFirst(alone) };
}

const times = (): Times => ({ p50: [], p99: [] });
const withoutFirst = ({ p50, p99 }: Times): Times => ({ p50: p50.slice(1), p99: p99.slice(1) });

/** Requests one after the other, until there are enough and `until` has resolved. */
async function timed(client: RawClient, sessionId: string, into: Times, until?: Promise<unknown>): Promise<void> {
  const command = { type: "get_echo", text };
  const samples: number[] = [];
  let isOver = until === undefined;
  void until?.then(() => {
    isOver = true;
  });
  while (samples.length < rounds || !isOver) {
    const startedAt = performance.now();
    await client.request("session/command", { sessionId, command });
    samples.push((performance.now() - startedAt) * 1_000);
    // A short pause between requests, as in real use; otherwise most samples would fall between two records.
    if (until !== undefined) await new Promise((resolve) => setTimeout(resolve, 1));
  }
  into.p50.push(median(samples));
  into.p99.push(quantile(samples, 0.99));
}
