import { join } from "node:path";
import { connect } from "../../client/index.ts";
import { startBareServer } from "../lib/bare-server.ts";
import { type Corpus, deltas, largeRecord, mixed, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { drain, type RecordSource } from "../lib/drain.ts";
import {
  directSource,
  echoPi,
  librarySource,
  rawSource,
  relayedSource,
  startEchoDirectly,
} from "../lib/echo-sources.ts";
import type { Figure, Measured, Resources, Setting } from "../lib/figure.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { interleave, ratios } from "../lib/statistics.ts";

export const eventThroughput: Figure = {
  title: "Throughput of events, one session and one client; every reader parses each record",
  goals: ["P3 small", "P3 library small", "P3 mixed", "P3 library mixed", "P6"],
  repetitions: 5,
  measure: async (setting, resources) => {
    const small = await measureCorpus("small", deltas(100_000), setting, resources);
    const agents = await measureCorpus("mixed", mixed(160), setting, resources);
    const large = await measureLarge(setting, resources);
    return {
      rows: [...small.rows, ...agents.rows, ...large.rows],
      notes: [...small.notes, ...agents.notes, ...large.notes],
    };
  },
};

async function measureCorpus(
  name: "small" | "mixed",
  records: Iterable<string>,
  setting: Setting,
  resources: Resources,
): Promise<Measured> {
  const corpus = writeCorpus(join(setting.directory, `${name}.jsonl`), records);
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
  const direct = directSource(startEchoDirectly(resources));
  const raw = await rawSession(daemon, setting, resources);
  const relayed = relayedSource((await startBareServer("bare-relay", setting, resources, [echoPi])).client);
  const library = await connect({ socketPath: daemon.socketPath, token: daemon.token });
  resources.add(library, (open) => void open.close());
  const parsed = await librarySource(library, (await library.createSession({ cwd: setting.directory })).id);
  const cpu: number[] = [];
  let merged = 0;
  const rate = async (source: RecordSource): Promise<number> => {
    const drained = await drain(source, corpus);
    merged += drained.merged;
    return corpus.records / drained.seconds;
  };
  const rates = await interleave(setting.repetitions, {
    direct: () => rate(direct),
    raw: async () => {
      const before = cpuMicroseconds(daemon.pid);
      const value = await rate(raw);
      cpu.push((cpuMicroseconds(daemon.pid) - before) / corpus.records);
      return value;
    },
    library: () => rate(parsed),
    relay: () => rate(relayed),
  });
  return {
    rows: [
      {
        name: `${name}: parsed frames at a client / direct`,
        unit: "x",
        values: ratios(rates.raw, rates.direct),
        goals: [`P3 ${name}`],
      },
      {
        name: `${name}: envelopes of the client library / direct`,
        unit: "x",
        values: ratios(rates.library, rates.direct),
        goals: [`P3 library ${name}`],
      },
      { name: `${name}: a bare relay / direct`, unit: "x", values: ratios(rates.relay, rates.direct) },
      { name: `${name}: parsed frames at a client / a bare relay`, unit: "x", values: ratios(rates.raw, rates.relay) },
      { name: `${name}: direct`, unit: "rec/s", values: rates.direct },
      { name: `${name}: parsed frames at a client`, unit: "rec/s", values: rates.raw },
      { name: `${name}: envelopes of the client library`, unit: "rec/s", values: rates.library },
      { name: `${name}: CPU of the daemon for a record`, unit: "us", values: cpu.slice(1) },
    ],
    notes: [
      `${name}: ${corpus.records} records of ${Math.round(corpus.bytes / corpus.records)} bytes on average for each value; ${merged} deltas were merged`,
    ],
  };
}

/** Megabytes per second of large records, which the client does not parse. */
async function measureLarge(setting: Setting, resources: Resources): Promise<Measured> {
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
  const source = await rawSession(daemon, setting, resources);
  const corpusOf = (name: string, bytes: number, count: number): Corpus =>
    writeCorpus(
      join(setting.directory, name),
      Array.from({ length: count }, () => largeRecord(bytes)),
    );
  const hundred = corpusOf("100k.jsonl", 100_000, 480);
  const eight = corpusOf("8m.jsonl", 8_000_000, 6);
  const megabytes = async (corpus: Corpus): Promise<number> =>
    corpus.bytes / 1e6 / (await drain(source, corpus, 1)).seconds;
  const rates = await interleave(setting.repetitions, {
    eight: () => megabytes(eight),
    hundred: () => megabytes(hundred),
  });
  return {
    rows: [
      {
        name: "MB/s of records of 8 MB / of 100 KB",
        unit: "x",
        values: ratios(rates.eight, rates.hundred),
        goals: ["P6"],
      },
      { name: "records of 8 MB", unit: "MB/s", values: rates.eight },
      { name: "records of 100 KB", unit: "MB/s", values: rates.hundred },
    ],
    notes: [],
  };
}

async function rawSession(
  daemon: Parameters<typeof RawClient.open>[0],
  { directory }: Setting,
  resources: Resources,
): Promise<RecordSource> {
  const client = await RawClient.open(daemon, "unix", resources);
  const { sessionId } = await client.request("session/create", { cwd: directory });
  await client.request("session/subscribe", { sessionId });
  return rawSource(client, sessionId);
}
