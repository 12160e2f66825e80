import { join } from "node:path";
import { deltas, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { drain } from "../lib/drain.ts";
import { echoPi, rawSource } from "../lib/echo-sources.ts";
import type { Figure, Resources, Setting } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { interleave, quantile, ratios } from "../lib/statistics.ts";

const replayed = 10_000;
const clients = 1_000;
/** The maximum number of missed events of a reconnecting client. */
const missed = 200;

type Daemon = Awaited<ReturnType<typeof startDaemonUnderTest>>;

/** The cost of reconnecting. */
export const replay: Figure = {
  title: "Reading a stored log, against the same events live",
  goals: ["P18"],
  repetitions: 5,
  measure: async (setting, resources) => {
    const { daemon, client, sessionId, corpus } = await startStage(setting, resources);
    let merged = 0;
    const rates = await interleave(setting.repetitions, {
      live: async () => {
        const drained = await drain(rawSource(client, sessionId), corpus);
        merged += drained.merged;
        return corpus.records / drained.seconds;
      },
      replayed: async () => {
        const { cursor } = await client.request("session/get", { sessionId });
        return await rateOfReplay(daemon, resources, sessionId, cursor);
      },
    });
    return {
      rows: [
        {
          name: `replay of ${replayed} events / live`,
          unit: "x",
          values: ratios(rates.replayed, rates.live),
          goals: ["P18"],
        },
        { name: "replay", unit: "rec/s", values: rates.replayed },
        { name: "live", unit: "rec/s", values: rates.live },
      ],
      notes: [`both sides were warmed up, and parse each event; ${merged} live deltas were merged`],
    };
  },
};

export const reconnectStorm: Figure = {
  title: `${clients} clients that reconnect at once with a cursor`,
  goals: ["P20 p99", "P20 bare"],
  repetitions: 3,
  measure: async (setting, resources) => {
    const { daemon, client, sessionId, corpus } = await startStage(setting, resources);
    await drain(rawSource(client, sessionId), corpus);
    const { cursor } = await client.request("session/get", { sessionId });
    const gaps = { count: 0 };
    const p99 = await interleave(setting.repetitions, {
      bare: () => storm(daemon, resources, async (one) => void (await one.request("daemon/info", {}))),
      resumed: () =>
        storm(daemon, resources, (one, i) => resume(one, sessionId, cursor - 1 - (i % missed), cursor, gaps)),
    });
    return {
      rows: [
        { name: "p99 until one has all", unit: "ms", values: p99.resumed, goals: ["P20 p99"] },
        {
          name: "the same / a connection and one call",
          unit: "x",
          values: ratios(p99.resumed, p99.bare),
          goals: ["P20 bare"],
        },
        { name: "p99 of a connection and one call", unit: "ms", values: p99.bare },
      ],
      notes: [`each has up to ${missed} missed events; ${gaps.count} gaps`],
    };
  },
};

async function startStage(setting: Setting, resources: Resources) {
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
  const corpus = writeCorpus(join(setting.directory, "deltas.jsonl"), deltas(15_000));
  const client = await RawClient.open(daemon, "unix", resources);
  const { sessionId } = await client.request("session/create", { cwd: setting.directory });
  await client.request("session/subscribe", { sessionId });
  return { daemon, corpus, client, sessionId };
}

async function rateOfReplay(daemon: Daemon, resources: Resources, sessionId: string, cursor: number): Promise<number> {
  const reader = await RawClient.open(daemon, "unix", resources);
  const done = Promise.withResolvers<void>();
  let arrived = 0;
  rawSource(reader, sessionId).listen((count) => {
    arrived += count;
    if (arrived >= replayed) done.resolve();
  });
  const startedAt = performance.now();
  await reader.request("session/subscribe", { sessionId, after: cursor - replayed });
  await within(30, () => `${replayed - arrived} of ${replayed} replayed events`, done.promise);
  const rate = replayed / ((performance.now() - startedAt) / 1_000);
  reader.close();
  return rate;
}

/** Lets all clients connect and call at once. Returns the 99th percentile of their durations in milliseconds. */
async function storm(
  daemon: Daemon,
  resources: Resources,
  act: (client: RawClient, index: number) => Promise<void>,
): Promise<number> {
  const opened: RawClient[] = [];
  const all = Promise.all(
    Array.from({ length: clients }, async (_, i) => {
      const startedAt = performance.now();
      const client = await connectAgain(daemon, resources);
      opened.push(client);
      await act(client, i);
      return performance.now() - startedAt;
    }),
  );
  const took = await within(30, () => `${clients} clients, of which ${opened.length} are connected`, all);
  for (const client of opened) client.close();
  await new Promise((resolve) => setTimeout(resolve, 500));
  return quantile(took, 0.99);
}

/** The system refuses connections while too many wait to be accepted; a client tries again, and the time counts. */
async function connectAgain(daemon: Daemon, resources: Resources): Promise<RawClient> {
  for (;;) {
    try {
      return await RawClient.open(daemon, "unix", resources);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }
}

async function resume(
  client: RawClient,
  sessionId: string,
  after: number,
  cursor: number,
  gaps: { count: number },
): Promise<void> {
  const done = Promise.withResolvers<void>();
  let expected = cursor - after;
  client.onGap = () => {
    gaps.count += 1;
  };
  client.onEvent = (frame) => {
    const { seq, firstSeq = seq } = JSON.parse(frame.toString("utf8")).params;
    expected -= seq - firstSeq + 1;
    if (expected <= 0) done.resolve();
  };
  await client.request("session/subscribe", { sessionId, after });
  await done.promise;
}
