import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { PiCommand } from "../../client/index.ts";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import { type Corpus, deltas, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { Readers } from "../lib/readers.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const loop = join(import.meta.dirname, "..", "fixtures", "stringify-server.mjs");
const counts = [1, 10, 100] as const;

/**
 * One session to many clients, in bursts. Measures processor time, because the clients are slower than the sender.
 */
export const fanOut: Figure = {
  title: "One session to 1, 10 and 100 clients, as fast as they can read",
  repetitions: 5,
  measure: async (setting, resources) => {
    const corpus = writeCorpus(join(setting.directory, "fan.jsonl"), deltas(4_000));
    const measurements: Record<string, () => Promise<number>> = {};
    for (const count of counts) {
      measurements[`daemon${count}`] = await throughDaemon(count, corpus, setting, resources);
      measurements[`loop${count}`] = await throughLoop(count, corpus, setting, resources);
    }
    const cpu = await interleave(setting.repetitions, measurements);
    const of = (name: string): readonly number[] => cpu[name] ?? [];
    const rows: Row[] = [
      {
        name: "CPU for a delivery: 100 clients / 1 client",
        unit: "x",
        values: ratios(of("daemon100"), of("daemon1")),
        goal: { id: "P8", sense: "at most", target: 1.3, stretch: 1.1 },
      },
      {
        name: "100 clients: deliveries in the CPU's time / of a loop that stringifies for each",
        unit: "x",
        values: ratios(of("loop100"), of("daemon100")),
        goal: { id: "P8", sense: "at least", target: 4, stretch: 8 },
      },
      ...counts.flatMap((count): Row[] => [
        { name: `${count}: CPU of the daemon for a delivery`, unit: "us", values: of(`daemon${count}`) },
        { name: `${count}: CPU of the loop for a delivery`, unit: "us", values: of(`loop${count}`) },
      ]),
    ];
    return { rows, notes: [`${corpus.records} records of ${Math.round(corpus.bytes / corpus.records)} bytes`] };
  },
};

type Measurement = () => Promise<number>;

async function throughDaemon(
  count: number,
  corpus: Corpus,
  setting: Setting,
  resources: Resources,
): Promise<Measurement> {
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
  const client = await RawClient.open(daemon, "unix", resources);
  const { sessionId } = await client.request("session/create", { cwd: setting.directory });
  const readers = await Readers.start({ kind: "clients", daemon, sessions: [sessionId], clients: count }, resources);
  let expected = (await readers.received()).records;
  return async () => {
    const before = cpuMicroseconds(daemon.pid) ?? Number.NaN;
    // One burst at a time, so that no client lags enough for merging.
    for (const { start, end, records } of corpus.bursts) {
      const command: PiCommand = { type: "emit", file: corpus.file, start, end };
      await client.request("session/command", { sessionId, command });
      expected += records * count;
      await readers.received(expected);
    }
    return ((cpuMicroseconds(daemon.pid) ?? Number.NaN) - before) / (corpus.records * count);
  };
}

async function throughLoop(
  count: number,
  corpus: Corpus,
  setting: Setting,
  resources: Resources,
): Promise<Measurement> {
  const socketPath = join(setting.directory, `l${count}`);
  const child = spawn(process.execPath, [loop, socketPath, corpus.file], { stdio: ["pipe", "pipe", "inherit"] });
  resources.add(child, async ({ stdin }) => {
    stdin.end();
    await once(child, "exit");
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  await lines.next();
  const daemon = { socketPath, url: "http://localhost", token: "none" } as DaemonFile;
  const readers = await Readers.start({ kind: "clients", daemon, sessions: [], clients: count }, resources);
  let expected = 0;
  return async () => {
    child.stdin.write("\n");
    const { value } = await lines.next();
    const { cpuUs, deliveries } = JSON.parse(String(value)) as { readonly cpuUs: number; readonly deliveries: number };
    expected += deliveries;
    await readers.received(expected);
    return cpuUs / deliveries;
  };
}
