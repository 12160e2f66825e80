import { join } from "node:path";
import type { PiCommand } from "../../client/index.ts";
import { type BareServer, startBareServer } from "../lib/bare-server.ts";
import { type Corpus, deltas, writeCorpus } from "../lib/corpus.ts";
import { type DaemonUnderTest, startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { streamPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Setting } from "../lib/figure.ts";
import { createSessions } from "../lib/many-sessions.ts";
import { openLoop } from "../lib/open-loop.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { Readers } from "../lib/readers.ts";
import { median, quantile, ratios } from "../lib/statistics.ts";

interface Rate {
  readonly sessions: number;
  readonly perSecond: number;
  readonly seconds: number;
}

interface Streamed {
  /** Processor time for an event, in microseconds. */
  readonly cpu: number;
  /** Of as many children's plain reader, in the same turn. */
  readonly directCpu: number;
  readonly delayP99Ms: number;
  readonly utilization: number;
  /** Milliseconds of requests to the streaming sessions. */
  readonly requestP99: number;
  readonly merged: number;
  readonly lost: number;
}

type Relayed = Pick<Streamed, "cpu" | "requestP99">;

const usual: Rate = { sessions: 50, perSecond: 200, seconds: 4 };
/** At a rate at which nothing is merged: merging saves processor time. */
const few: Rate = { sessions: 10, perSecond: 50, seconds: 4 };
const growth: Rate = { sessions: 100, perSecond: 50, seconds: 4 };
const most: Rate = { sessions: 200, perSecond: 50, seconds: 6 };
const requestEveryMs = 10;

export const manySessions: Figure = {
  title: "50 sessions with 200 events a second each; 10 and 100 with 50",
  goals: ["P9 CPU", "P9 delay", "P9 busy", "P9 loss", "P10 CPU"],
  repetitions: 3,
  measure: async (setting, resources) => {
    const { stream } = await startStage(setting, resources, growth.sessions);
    const runs: Record<"few" | "usual" | "growth", Streamed[]> = { few: [], usual: [], growth: [] };
    for (let i = 0; i < setting.repetitions; i += 1) {
      runs.few.push(await stream(few));
      runs.usual.push(await stream(usual));
      runs.growth.push(await stream(growth));
    }
    const cpu = (of: readonly Streamed[]): readonly number[] => of.map((run) => run.cpu);
    return {
      rows: [
        {
          name: "50 sessions: CPU of the daemon for an event / of a direct reader",
          unit: "x",
          values: runs.usual.map((run) => run.cpu / run.directCpu),
          goals: ["P9 CPU"],
        },
        {
          name: "50 sessions: the event loop's delay, p99",
          unit: "ms",
          values: runs.usual.map(({ delayP99Ms }) => delayP99Ms),
          goals: ["P9 delay"],
        },
        {
          name: "50 sessions: the event loop's utilization",
          unit: "x",
          values: runs.usual.map(({ utilization }) => utilization),
          goals: ["P9 busy"],
        },
        {
          name: "50 sessions: events lost, merged or misordered",
          unit: "events",
          values: runs.usual.map(({ lost, merged }) => lost + merged),
          goals: ["P9 loss"],
        },
        {
          name: "CPU for an event: 100 sessions / 10",
          unit: "x",
          values: ratios(cpu(runs.growth), cpu(runs.few)),
          goals: ["P10 CPU"],
        },
        { name: "10 sessions: CPU for an event", unit: "us", values: cpu(runs.few) },
        { name: "50 sessions: CPU for an event", unit: "us", values: cpu(runs.usual) },
        { name: "100 sessions: CPU for an event", unit: "us", values: cpu(runs.growth) },
        { name: "50 children: CPU of a direct reader", unit: "us", values: runs.usual.map((run) => run.directCpu) },
        { name: "100 sessions: merged", unit: "events", values: runs.growth.map(({ merged }) => merged) },
        { name: "100 sessions: lost or misordered", unit: "events", values: runs.growth.map(({ lost }) => lost) },
      ],
      notes: [`${usual.seconds} s for each value; one client reads all sessions and checks each number`],
    };
  },
};

export const twoHundredSessions: Figure = {
  title: "200 sessions: idle, and with 50 events a second each",
  goals: ["P10 idle", "Q13 loss", "Q13 p99", "Q13 CPU"],
  repetitions: 3,
  deadlineSeconds: 240,
  measure: async (setting, resources) => {
    const { stream, idle, program, corpus } = await startStage(setting, resources, most.sessions);
    const relay = await startBareServer("bare-relays", setting, resources, [String(most.sessions), program]);
    const runs: Streamed[] = [];
    const relayed: Relayed[] = [];
    for (let i = 0; i < setting.repetitions; i += 1) {
      runs.push(await stream(most));
      relayed.push(await throughRelay(relay, corpus, most, resources));
    }
    const row = (name: string, of: (run: Streamed) => number) => ({ name, values: runs.map(of) });
    return {
      rows: [
        {
          name: "get_state with 199 other idle sessions / with none, p50",
          unit: "x",
          values: idle,
          goals: ["P10 idle"],
        },
        {
          ...row("streaming: events lost, merged or misordered", ({ lost, merged }) => lost + merged),
          unit: "events",
          goals: ["Q13 loss"],
        },
        { ...row("streaming: p99 of a request", ({ requestP99 }) => requestP99), unit: "ms", goals: ["Q13 p99"] },
        {
          ...row("streaming: CPU of the daemon for an event / of a direct reader", (run) => run.cpu / run.directCpu),
          unit: "x",
          goals: ["Q13 CPU"],
        },
        {
          name: "streaming through a bare relay: p99 of a request",
          unit: "ms",
          values: relayed.map((run) => run.requestP99),
        },
        {
          name: "streaming through a bare relay: CPU of the relay for an event / of a direct reader",
          unit: "x",
          values: relayed.map(({ cpu }, i) => cpu / (runs[i]?.directCpu ?? Number.NaN)),
        },
        { ...row("streaming: lost or misordered", ({ lost }) => lost), unit: "events" },
        { ...row("streaming: CPU of the daemon for an event", ({ cpu }) => cpu), unit: "us" },
        { ...row("streaming: CPU of a direct reader for an event", ({ directCpu }) => directCpu), unit: "us" },
        { ...row("streaming: the event loop's delay, p99", ({ delayP99Ms }) => delayP99Ms), unit: "ms" },
        { ...row("streaming: the event loop's utilization", ({ utilization }) => utilization), unit: "x" },
      ],
      notes: [
        `${most.seconds} s for each value; the children's processor time is not counted, but they share the machine`,
        `one request is due every ${requestEveryMs} ms, to each session in turn, counted from then`,
      ],
    };
  },
};

/** A daemon with this many sessions, and a measurement of some of them streaming. */
async function startStage(setting: Setting, resources: Resources, count: number) {
  const corpus = writeCorpus(join(setting.directory, "one.jsonl"), deltas(1));
  const program = await streamPi(setting);
  const daemon = await startDaemonUnderTest(setting, resources, { pi: program });
  const client = await RawClient.open(daemon, "unix", resources);
  const [first = ""] = await createSessions(client, 1, setting.directory);
  const alone = await roundTrips(client, first, setting.repetitions);
  const sessions = [first, ...(await createSessions(client, count - 1, setting.directory))];
  const beside = await roundTrips(client, first, setting.repetitions);
  const stream = async (rate: Rate): Promise<Streamed> => {
    const chosen = sessions.slice(0, rate.sessions);
    const own = await throughDaemon(daemon, client, chosen, corpus, rate, resources);
    return { ...own, directCpu: await directly(program, corpus, rate, resources) };
  };
  return { stream, idle: ratios(beside, alone), program, corpus };
}

async function throughDaemon(
  daemon: DaemonUnderTest,
  client: RawClient,
  sessions: readonly string[],
  corpus: Corpus,
  rate: Rate,
  resources: Resources,
): Promise<Omit<Streamed, "directCpu">> {
  const readers = await Readers.start({ kind: "clients", daemon, sessions, clients: 1, checks: true }, resources);
  await daemon.loopHealth();
  const before = cpuMicroseconds(daemon.pid);
  const command = pace(corpus, rate);
  const send = async (i: number, own: PiCommand): Promise<void> => {
    const sessionId = sessions[i % sessions.length] ?? "";
    await client.request("session/command", { sessionId, command: own });
  };
  const { merged, lost, misordered, records, requestP99 } = await paced(rate, readers, command, send);
  const cpu = (cpuMicroseconds(daemon.pid) - before) / records;
  const { delayP99Ms, utilization } = await daemon.loopHealth();
  await readers.stop();
  return { cpu, delayP99Ms, utilization, requestP99, merged, lost: lost + misordered };
}

/** The same through a program that only passes lines on. */
async function throughRelay(
  { client, pid, address }: BareServer,
  corpus: Corpus,
  rate: Rate,
  resources: Resources,
): Promise<Relayed> {
  const task = { kind: "clients", daemon: address, sessions: ["all"], clients: 1 } as const;
  const readers = await Readers.start(task, resources);
  const before = cpuMicroseconds(pid);
  const send = (i: number, command: PiCommand): Promise<void> =>
    client.passOn({ child: i % rate.sessions, ...command });
  const { records, requestP99 } = await paced(rate, readers, pace(corpus, rate), send);
  const cpu = (cpuMicroseconds(pid) - before) / records;
  await readers.stop();
  return { cpu, requestP99 };
}

/** All sessions stream, while one after the other is asked for its state. */
async function paced(
  { sessions, perSecond, seconds }: Rate,
  readers: Readers,
  command: PiCommand,
  send: (session: number, command: PiCommand) => Promise<void>,
) {
  const streams = Array.from({ length: sessions }, (_, i) => send(i, command));
  const count = (seconds * 1_000) / requestEveryMs;
  const ask = (i: number): Promise<void> => send(i, { type: "get_state" });
  const asked = within(60, `${count} answers`, openLoop(ask, { everyMs: requestEveryMs, count }));
  const [received, { latencies }] = await Promise.all([
    // Longer for children that the machine slows down.
    readers.received(sessions * perSecond * seconds, 10 * seconds),
    asked,
    Promise.all(streams),
  ]);
  return { ...received, requestP99: quantile(latencies, 0.99) };
}

function pace({ file, bytes }: Corpus, { perSecond, seconds }: Rate) {
  return { type: "pace", file, start: 0, end: bytes, everyMs: 1_000 / perSecond, times: perSecond * seconds };
}

/** Microseconds per event of a plain reader of as many children. */
async function directly(program: string, corpus: Corpus, rate: Rate, resources: Resources): Promise<number> {
  const { sessions, perSecond, seconds } = rate;
  // While they are started one after the other, the first ones already write.
  const longer = { ...rate, seconds: 3 * seconds };
  const task = { kind: "direct", program, children: sessions, command: pace(corpus, longer) } as const;
  const readers = await Readers.start(task, resources);
  const now = await readers.received();
  const before = await readers.received(now.records + 1);
  const after = await readers.received(before.records + sessions * perSecond * 2, 30);
  await readers.stop();
  return (after.cpuUs - before.cpuUs) / (after.records - before.records);
}

async function roundTrips(client: RawClient, sessionId: string, repetitions: number): Promise<number[]> {
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
