import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { PiCommand } from "../../client/index.ts";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import { type Corpus, deltas, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { Readers } from "../lib/readers.ts";
import { interleave, marginal, ratios } from "../lib/statistics.ts";

const loop = join(import.meta.dirname, "..", "fixtures", "stringify-server.mjs");
const counts = [1, 10, 100] as const;

/**
 * One session to many clients, in bursts. Measures processor time, because the clients are slower than the sender.
 */
export const fanOut: Figure = {
  title: "One session to 1, 10 and 100 clients, as fast as they can read",
  goals: ["P8 growth", "P8 loop"],
  repetitions: 5,
  measure: async (setting, resources) => {
    const corpus = writeCorpus(join(setting.directory, "fan.jsonl"), deltas(4_000));
    const measurements: Record<string, () => Promise<number>> = {};
    for (const count of counts) {
      measurements[`daemon${count}`] = await throughDaemon(count, corpus, setting, resources);
      measurements[`loop${count}`] = await throughLoop(count, corpus, setting, resources);
    }
    const cpu = await interleave(setting.repetitions, measurements);
    /** Processor time of a further delivery: what more clients cost, divided by their number. */
    const further = (name: "daemon" | "loop", most: 10 | 100): readonly number[] =>
      marginal(cpu[`${name}1`] ?? [], cpu[`${name}${most}`] ?? [], most - 1);
    const rows: Row[] = [
      {
        name: "CPU of a further delivery: up to 100 clients / up to 10",
        unit: "x",
        values: ratios(further("daemon", 100), further("daemon", 10)),
        goals: ["P8 growth"],
      },
      {
        name: "CPU of a further delivery, up to 100 clients: a loop that stringifies for each / the daemon",
        unit: "x",
        values: ratios(further("loop", 100), further("daemon", 100)),
        goals: ["P8 loop"],
      },
      {
        name: "CPU of the daemon for a further delivery, up to 100 clients",
        unit: "us",
        values: further("daemon", 100),
      },
      { name: "CPU of the daemon for a further delivery, up to 10 clients", unit: "us", values: further("daemon", 10) },
      { name: "CPU of the loop for a further delivery, up to 100 clients", unit: "us", values: further("loop", 100) },
      ...counts.flatMap((count): Row[] => [
        { name: `${count}: CPU of the daemon for a record`, unit: "us", values: cpu[`daemon${count}`] ?? [] },
        { name: `${count}: CPU of the loop for a record`, unit: "us", values: cpu[`loop${count}`] ?? [] },
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
    const before = cpuMicroseconds(daemon.pid);
    // One burst at a time, so that no client lags enough for merging.
    for (const { start, end, records } of corpus.bursts) {
      const command: PiCommand = { type: "emit", file: corpus.file, start, end };
      await client.request("session/command", { sessionId, command });
      expected += records * count;
      await readers.received(expected);
    }
    return (cpuMicroseconds(daemon.pid) - before) / corpus.records;
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
  await within(20, "the start of the loop", lines.next());
  const daemon = { socketPath, url: "http://localhost", token: "none" } as DaemonFile;
  const readers = await Readers.start({ kind: "clients", daemon, sessions: [], clients: count }, resources);
  let expected = 0;
  return async () => {
    child.stdin.write("\n");
    const { value } = await within(60, "the loop's deliveries", lines.next());
    const { cpuUs, deliveries } = JSON.parse(String(value)) as { readonly cpuUs: number; readonly deliveries: number };
    expected += deliveries;
    await readers.received(expected);
    return cpuUs / corpus.records;
  };
}
