import { join } from "node:path";
import { type Corpus, deltas, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row } from "../lib/figure.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { Readers } from "../lib/readers.ts";
import { median, ratios } from "../lib/statistics.ts";

const few = 10;
const usual = 50;
const many = 100;
const perSecond = 200;
const seconds = 4;

interface Streamed {
  readonly cpuPerEvent: number;
  readonly delayP99Ms: number;
  readonly utilization: number;
  readonly misplaced: number;
}

/** Sessions that all stream at the rate of a fast model. */
export const manySessions: Figure = {
  title: `Many sessions with ${perSecond} events a second each`,
  repetitions: 3,
  measure: async (setting, resources) => {
    const corpus = writeCorpus(join(setting.directory, "one.jsonl"), deltas(1));
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const client = await RawClient.open(daemon, "unix", resources);
    const sessions: string[] = [];
    const rtts = { one: [] as number[], all: [] as number[] };
    while (sessions.length < many) {
      sessions.push((await client.request("session/create", { cwd: setting.directory })).sessionId);
      if (sessions.length === 1) rtts.one = await roundTrips(client, sessions, setting.repetitions);
    }
    rtts.all = await roundTrips(client, sessions, setting.repetitions);
    const stream = async (count: number): Promise<Streamed> => {
      const chosen = sessions.slice(0, count);
      const readers = await Readers.start(
        { kind: "clients", daemon, sessions: chosen, clients: 1, checks: true },
        resources,
      );
      await daemon.loopHealth();
      const before = cpuMicroseconds(daemon.pid) ?? Number.NaN;
      await Promise.all(
        chosen.map((sessionId) => client.request("session/command", { sessionId, command: pace(corpus) })),
      );
      const { misplaced, records } = await readers.received(count * perSecond * seconds);
      const cpuPerEvent = ((cpuMicroseconds(daemon.pid) ?? Number.NaN) - before) / records;
      const { delayP99Ms, utilization } = await daemon.loopHealth();
      await readers.stop();
      return { cpuPerEvent, delayP99Ms, utilization, misplaced };
    };
    const runs: { few: Streamed; usual: Streamed; many: Streamed; direct: number }[] = [];
    for (let i = 0; i < setting.repetitions; i += 1) {
      runs.push({
        few: await stream(few),
        usual: await stream(usual),
        direct: await directly(corpus, resources),
        many: await stream(many),
      });
    }
    return { rows: rowsOf(runs, rtts), notes: [`${seconds} s for each value; one client reads all of them`] };
  },
};

function rowsOf(
  runs: readonly { few: Streamed; usual: Streamed; many: Streamed; direct: number }[],
  rtts: { readonly one: readonly number[]; readonly all: readonly number[] },
): Row[] {
  const cpu = (name: "few" | "usual" | "many"): number[] => runs.map((run) => run[name].cpuPerEvent);
  const direct = runs.map((run) => run.direct);
  return [
    {
      name: `${usual} sessions: CPU of the daemon for an event / of a direct reader`,
      unit: "x",
      values: ratios(cpu("usual"), direct),
      goal: { id: "P9", sense: "at most", target: 2.3, stretch: 1.9 },
    },
    {
      name: `${usual} sessions: the event loop's delay, p99`,
      unit: "ms",
      values: runs.map(({ usual: { delayP99Ms } }) => delayP99Ms),
      goal: { id: "P9", sense: "at most", target: 5, stretch: 2 },
    },
    {
      name: `${usual} sessions: the event loop's utilization`,
      unit: "x",
      values: runs.map(({ usual: { utilization } }) => utilization),
      goal: { id: "P9", sense: "at most", target: 0.6, stretch: 0.45 },
    },
    {
      name: "events lost, merged or out of order",
      unit: "x",
      values: runs.map((run) => run.few.misplaced + run.usual.misplaced + run.many.misplaced),
      goal: { id: "P9", sense: "at most", target: 0 },
    },
    {
      name: `CPU for an event: ${many} sessions / ${few}`,
      unit: "x",
      values: ratios(cpu("many"), cpu("few")),
      goal: { id: "P10", sense: "at most", target: 1, stretch: 0.5 },
    },
    {
      name: `get_state with ${many} other idle sessions / with none`,
      unit: "x",
      values: ratios(rtts.all, rtts.one),
      goal: { id: "P10", sense: "at most", target: 1.5, stretch: 1.2 },
    },
    { name: `${few} sessions: CPU for an event`, unit: "us", values: cpu("few") },
    { name: `${usual} sessions: CPU for an event`, unit: "us", values: cpu("usual") },
    { name: `${many} sessions: CPU for an event`, unit: "us", values: cpu("many") },
    { name: `${usual} children: CPU of a direct reader for an event`, unit: "us", values: direct },
  ];
}

function pace({ file, bytes }: Corpus) {
  return { type: "pace", file, start: 0, end: bytes, everyMs: 1_000 / perSecond, times: perSecond * seconds };
}

/** Microseconds per event of a plain reader of as many children. */
async function directly(corpus: Corpus, resources: Resources): Promise<number> {
  const command = pace(corpus);
  const readers = await Readers.start({ kind: "direct", program: echoPi, children: usual, command }, resources);
  // After the children's start.
  const before = await readers.received(usual * perSecond);
  const after = await readers.received(usual * perSecond * seconds);
  await readers.stop();
  return (after.cpuUs - before.cpuUs) / (after.records - before.records);
}

async function roundTrips(client: RawClient, sessions: readonly string[], repetitions: number): Promise<number[]> {
  const [sessionId = ""] = sessions;
  const medians: number[] = [];
  for (let repetition = 0; repetition <= repetitions; repetition += 1) {
    const samples: number[] = [];
    for (let i = 0; i < 1_000; i += 1) {
      const startedAt = performance.now();
      await client.request("session/command", { sessionId, command: { type: "get_state" } });
      samples.push((performance.now() - startedAt) * 1_000);
    }
    if (repetition > 0) medians.push(median(samples));
  }
  return medians;
}
