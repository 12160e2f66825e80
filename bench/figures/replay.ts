import { join } from "node:path";
import { deltas, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { drain } from "../lib/drain.ts";
import { echoPi, rawSource } from "../lib/echo-sources.ts";
import type { Figure, Resources } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { quantile, ratios } from "../lib/statistics.ts";

const replayed = 10_000;
const clients = 1_000;
/** The maximum number of missed events of a reconnecting client. */
const missed = 200;

type Daemon = Awaited<ReturnType<typeof startDaemonUnderTest>>;

/** The cost of reconnecting. */
export const replay: Figure = {
  title: "Reconnecting with a cursor",
  repetitions: 5,
  measure: async (setting, resources) => {
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const corpus = writeCorpus(join(setting.directory, "deltas.jsonl"), deltas(15_000));
    const client = await RawClient.open(daemon, "unix", resources);
    const { sessionId } = await client.request("session/create", { cwd: setting.directory });
    await client.request("session/subscribe", { sessionId });
    const live: number[] = [];
    const replayed: number[] = [];
    for (let i = 0; i < setting.repetitions; i += 1) {
      live.push(corpus.records / (await drain(rawSource(client, sessionId), corpus)));
      const { cursor } = await client.request("session/get", { sessionId });
      replayed.push(await rateOfReplay(daemon, resources, sessionId, cursor));
    }
    const { cursor } = await client.request("session/get", { sessionId });
    const bare = await storm(daemon, resources, async (one) => void (await one.request("daemon/info", {})));
    const gaps = { count: 0 };
    const resumed = await storm(daemon, resources, (one, i) =>
      resume(one, sessionId, cursor - 1 - (i % missed), cursor, gaps),
    );
    return {
      rows: [
        {
          name: `replay of ${replayed} events / live`,
          unit: "x",
          values: ratios(replayed, live),
          goal: { id: "P18", sense: "at least", target: 0.5, stretch: 0.9 },
        },
        { name: "replay", unit: "rec/s", values: replayed },
        {
          name: `${clients} clients at once: p99 until one has all`,
          unit: "ms",
          values: [quantile(resumed, 0.99)],
          goal: { id: "P20", sense: "at most", target: 1_000 },
        },
        {
          name: "the same / a connection and one call",
          unit: "x",
          values: [quantile(resumed, 0.99) / quantile(bare, 0.99)],
          goal: { id: "P20", sense: "at most", target: 3 },
        },
      ],
      notes: [
        `the storm: ${resumed.length} clients reconnected, each with up to ${missed} missed events, and ${gaps.count} gaps`,
      ],
    };
  },
};

async function rateOfReplay(daemon: Daemon, resources: Resources, sessionId: string, cursor: number): Promise<number> {
  const reader = await RawClient.open(daemon, "unix", resources);
  const done = Promise.withResolvers<void>();
  let arrived = 0;
  reader.onEvent = () => {
    arrived += 1;
    if (arrived === replayed) done.resolve();
  };
  const startedAt = performance.now();
  await reader.request("session/subscribe", { sessionId, after: cursor - replayed });
  await done.promise;
  const rate = replayed / ((performance.now() - startedAt) / 1_000);
  await reader.request("session/unsubscribe", { sessionId });
  return rate;
}

/** Lets all clients connect and call at once. Returns the duration of each in milliseconds. */
async function storm(
  daemon: Daemon,
  resources: Resources,
  act: (client: RawClient, index: number) => Promise<void>,
): Promise<number[]> {
  const opened: RawClient[] = [];
  const took = await Promise.all(
    Array.from({ length: clients }, async (_, i) => {
      const startedAt = performance.now();
      const client = await RawClient.open(daemon, "unix", resources);
      opened.push(client);
      await act(client, i);
      return performance.now() - startedAt;
    }),
  );
  for (const client of opened) client.close();
  await new Promise((resolve) => setTimeout(resolve, 500));
  return took;
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
  client.onEvent = () => {
    expected -= 1;
    if (expected === 0) done.resolve();
  };
  await client.request("session/subscribe", { sessionId, after });
  await done.promise;
}
