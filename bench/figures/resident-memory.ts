import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ResourceStack } from "../../server/lib/resource-stack.ts";
import { type Corpus, deltas, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { drain } from "../lib/drain.ts";
import { echoPi, rawSource } from "../lib/echo-sources.ts";
import type { Figure, Row, Setting } from "../lib/figure.ts";
import { createSessions } from "../lib/many-sessions.ts";
import { type Memory, memoryOf } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { Readers } from "../lib/readers.ts";
import { ratios } from "../lib/statistics.ts";

const bareNode = join(import.meta.dirname, "..", "fixtures", "bare-node.mjs");
/** With the first ones the daemon also compiles its code and its heap grows, which later ones do not repeat. */
const firstSessions = 10;
const furtherSessions = 20;
/** The load of faster creates could start the thread that writes: its 10 MiB are not the sessions'. */
const betweenSessionsMs = 1_000;
const furtherClients = 1_000;
/** Streams below what the daemon keeps of one session. */
const keptSessions = 8;
const keptDeltas = 16_000;
const unreadDeltas = 80_000;
const warmUpBursts = 2;
/** Long enough to collect the garbage of the start. */
const restMs = 1_500;

interface Stages {
  readonly bare: Memory;
  readonly fresh: Memory;
  readonly one: Memory;
  readonly first: Memory;
  readonly sessions: Memory;
  readonly clients: Memory;
}

export const residentMemory: Figure = {
  title: "The daemon's resident memory, without its children's, against a bare Node with http, ws and sqlite",
  goals: ["Q2 fresh", "Q2 session", "P11 session", "P11 client"],
  repetitions: 3,
  measure: async (setting) => {
    const runs: Stages[] = [];
    for (let i = 0; i < setting.repetitions; i += 1) runs.push(await measureOnce(setting));
    const resident = (stage: keyof Stages): readonly number[] => runs.map((run) => run[stage].residentMiB);
    const proportional = (stage: keyof Stages): readonly number[] => runs.map((run) => run[stage].proportionalMiB);
    const further = (from: keyof Stages, to: keyof Stages, count: number): readonly number[] =>
      runs.map((run) => ((run[to].residentMiB - run[from].residentMiB) * 1_024) / count);
    const rows: Row[] = [
      {
        name: "fresh / a bare Node",
        unit: "x",
        values: ratios(resident("fresh"), resident("bare")),
        goals: ["Q2 fresh"],
      },
      {
        name: "with one session and one client / a bare Node",
        unit: "x",
        values: ratios(resident("one"), resident("bare")),
        goals: ["Q2 session"],
      },
      {
        name: `for each of ${furtherSessions} further idle sessions, after ${firstSessions + 1}`,
        unit: "KiB",
        values: further("first", "sessions", furtherSessions),
        goals: ["P11 session"],
      },
      {
        name: `for each of the first ${firstSessions} after one`,
        unit: "KiB",
        values: further("one", "first", firstSessions),
      },
      {
        name: "for each further idle WebSocket client",
        unit: "KiB",
        values: further("sessions", "clients", furtherClients),
        goals: ["P11 client"],
      },
      { name: "a bare Node, RSS", unit: "MiB", values: resident("bare") },
      { name: "fresh, RSS", unit: "MiB", values: resident("fresh") },
      { name: "with one session and one client, RSS", unit: "MiB", values: resident("one") },
      { name: "a bare Node, PSS", unit: "MiB", values: proportional("bare") },
      { name: "fresh, PSS", unit: "MiB", values: proportional("fresh") },
      { name: "with one session and one client, PSS", unit: "MiB", values: proportional("one") },
    ];
    return { rows, notes: ["a new daemon for each repetition; the idle clients are subscribed to one idle session"] };
  },
};

async function measureOnce(setting: Setting): Promise<Stages> {
  const resources = new ResourceStack();
  try {
    const bare = spawn(process.execPath, [bareNode], { stdio: ["pipe", "pipe", "inherit"] });
    resources.add(bare, ({ stdin }) => void stdin.end());
    await within(20, "the start of the bare Node", once(bare.stdout, "data"));
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const fresh = await rested(daemon.pid);
    const stages = { bare: memoryOf(bare.pid ?? -1), fresh };
    const client = await RawClient.open(daemon, "unix", resources);
    const create = (count: number) => createSessions(client, count, setting.directory, betweenSessionsMs);
    const [sessionId = ""] = await create(1);
    await client.request("session/subscribe", { sessionId });
    const one = await rested(daemon.pid);
    await create(firstSessions);
    const first = await rested(daemon.pid);
    await create(furtherSessions);
    const sessions = await rested(daemon.pid);
    await Readers.start({ kind: "clients", daemon, sessions: [sessionId], clients: furtherClients }, resources);
    return { ...stages, one, first, sessions, clients: await rested(daemon.pid) };
  } finally {
    await resources.release();
  }
}

/** What the daemon keeps of a stream for replay, and for a client that does not read it. */
export const streamMemory: Figure = {
  title: "The daemon's memory for streams that it keeps, and for one that a client does not read",
  goals: ["P12"],
  repetitions: 3,
  measure: async (setting) => {
    const kept = writeCorpus(join(setting.directory, "kept.jsonl"), deltas(keptDeltas));
    const long = writeCorpus(join(setting.directory, "long.jsonl"), deltas(unreadDeltas));
    const keptBytes: number[] = [];
    const unread: number[] = [];
    const read: number[] = [];
    for (let i = 0; i < setting.repetitions; i += 1) {
      keptBytes.push(await grownBy(kept, setting, { sessions: keptSessions, unread: false }));
      read.push(await grownBy(long, setting, { sessions: 1, unread: false }));
      unread.push(await grownBy(long, setting, { sessions: 1, unread: true }));
    }
    const mebibytes = (keptSessions * kept.bytes) / 1024 / 1024;
    return {
      rows: [
        {
          name: `growth / bytes of the events of ${keptSessions} sessions, all kept for replay`,
          unit: "x",
          values: keptBytes.map((grown) => grown / mebibytes),
          goals: ["P12"],
        },
        {
          name: `a stream of ${Math.round(long.bytes / 1024 / 1024)} MiB: growth with an additional client that does not read`,
          unit: "MiB",
          values: unread,
        },
        { name: "the same stream: growth without that client", unit: "MiB", values: read },
      ],
      notes: [`${mebibytes.toFixed(0)} MiB of kept events; before it, ${warmUpBursts} MiB were streamed and closed`],
    };
  },
};

async function grownBy(
  corpus: Corpus,
  setting: Setting,
  { sessions, unread }: { readonly sessions: number; readonly unread: boolean },
): Promise<number> {
  const resources = new ResourceStack();
  try {
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const client = await RawClient.open(daemon, "unix", resources);
    const stream = async (streamed: Corpus): Promise<string> => {
      const { sessionId } = await client.request("session/create", { cwd: setting.directory });
      await client.request("session/subscribe", { sessionId });
      const task = { kind: "clients", daemon, sessions: [sessionId], clients: 1, reads: false } as const;
      if (unread) await Readers.start(task, resources);
      await drain(rawSource(client, sessionId), streamed);
      return sessionId;
    };
    const bursts = corpus.bursts.slice(0, warmUpBursts);
    const records = bursts.reduce((sum, burst) => sum + burst.records, 0);
    await client.request("session/close", { sessionId: await stream({ ...corpus, bursts, records }) });
    const before = await rested(daemon.pid);
    for (let i = 0; i < sessions; i += 1) await stream(corpus);
    return (await rested(daemon.pid)).residentMiB - before.residentMiB;
  } finally {
    await resources.release();
  }
}

async function rested(pid: number): Promise<Memory> {
  await sleep(restMs);
  return memoryOf(pid);
}
