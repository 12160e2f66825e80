import { join } from "node:path";
import { connect } from "../../client/index.ts";
import { type Corpus, deltas, mixed, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { drain, type RecordSource } from "../lib/drain.ts";
import { directSource, echoPi, librarySource, rawSource, startEchoDirectly } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const goals = {
  small: { id: "P3", sense: "at least", target: 0.4, stretch: 0.65 },
  mixed: { id: "P3", sense: "at least", target: 0.4, stretch: 0.75 },
} as const;

export const eventThroughput: Figure = {
  title: "Throughput of events, one session and one client",
  repetitions: 5,
  measure: async (setting, resources) => {
    const small = writeCorpus(join(setting.directory, "small.jsonl"), deltas(200_000));
    const agents = writeCorpus(join(setting.directory, "mixed.jsonl"), mixed(320));
    return {
      rows: [
        ...(await measureCorpus("small", small, setting, resources)),
        ...(await measureCorpus("mixed", agents, setting, resources)),
      ],
      notes: [
        describe("small", small),
        describe("mixed", agents),
        "direct: a reader that splits bytes and parses each record",
      ],
    };
  },
};

async function measureCorpus(
  name: keyof typeof goals,
  corpus: Corpus,
  setting: Setting,
  resources: Resources,
): Promise<Row[]> {
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
  const direct = directSource(startEchoDirectly(resources));
  const client = await RawClient.open(daemon, "unix", resources);
  const raw = await sessionOf(client, setting);
  const library = await connect({ socketPath: daemon.socketPath, token: daemon.token });
  resources.add(library, (open) => void open.close());
  const parsed = await librarySource(library, (await library.createSession({ cwd: setting.directory })).id);
  const cpu: number[] = [];
  const rates = await interleave(setting.repetitions, {
    direct: () => rate(direct, corpus),
    raw: async () => {
      const before = cpuMicroseconds(daemon.pid);
      const value = await rate(raw, corpus);
      const after = cpuMicroseconds(daemon.pid);
      if (before !== undefined && after !== undefined) cpu.push((after - before) / corpus.records);
      return value;
    },
    library: () => rate(parsed, corpus),
  });
  return [
    {
      name: `${name}: frames at a client / direct`,
      unit: "x",
      values: ratios(rates.raw, rates.direct),
      goal: goals[name],
    },
    {
      name: `${name}: envelopes of the client library / direct`,
      unit: "x",
      values: ratios(rates.library, rates.direct),
    },
    { name: `${name}: direct`, unit: "rec/s", values: rates.direct },
    { name: `${name}: frames at a client`, unit: "rec/s", values: rates.raw },
    { name: `${name}: envelopes of the client library`, unit: "rec/s", values: rates.library },
    ...(cpu.length > 1
      ? [{ name: `${name}: CPU of the daemon for a record`, unit: "us" as const, values: cpu.slice(1) }]
      : []),
  ];
}

async function sessionOf(client: RawClient, { directory }: Setting): Promise<RecordSource> {
  const { sessionId } = await client.request("session/create", { cwd: directory });
  await client.request("session/subscribe", { sessionId });
  return rawSource(client, sessionId);
}

async function rate(source: RecordSource, corpus: Corpus): Promise<number> {
  return corpus.records / (await drain(source, corpus));
}

function describe(name: string, { records, bytes }: Corpus): string {
  return `${name}: ${records} records of ${Math.round(bytes / records)} bytes on average for each value`;
}
