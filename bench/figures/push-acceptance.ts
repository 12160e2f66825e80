import { join } from "node:path";
import { startBareServer } from "../lib/bare-server.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { commitMicroseconds, slowDisk, slowSyncMs, syncMicroseconds } from "../lib/disk.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Setting } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { interleave, median, ratios } from "../lib/statistics.ts";

const single = 500;
const inFlight = 50;
const many = 2_000;
const clients = 16;
const sessions = 8;
const content = "x".repeat(300);

/** Pushes that are answered when they are on disk. Every rate includes writing their settled states. */
export const pushAcceptance: Figure = {
  title: "Pushes accepted: on disk before the answer",
  goals: ["P16", "Q4 p50"],
  repetitions: 5,
  measure: async (setting, resources) => {
    const pushers = await startPushers(setting, resources, { clients });
    const [first] = pushers;
    if (first === undefined) throw new Error("No client is connected.");
    const { client: bare } = await startBareServer("bare-push", setting, resources, [
      join(setting.directory, "pushes"),
    ]);
    const toBare = (): Promise<unknown> =>
      bare.request("delivery/push", { sessionId: "-", customType: "bench", content });
    const values = await interleave(setting.repetitions, {
      sync: async () => syncMicroseconds(join(setting.directory, "sync"), single),
      commit: async () => commitMicroseconds(join(setting.directory, "rows.db"), single),
      bare: () => ackMicroseconds(toBare, single),
      ack: () => ackMicroseconds(first, single),
      grouped: () => pushRate([first], many, inFlight),
      sixteen: () => pushRate(pushers, many, 5),
    });
    return {
      rows: [
        {
          name: "accepted p50 (1 client, one at a time) / one fdatasync p50",
          unit: "x",
          values: ratios(values.ack, values.sync),
          goals: ["P16", "Q4 p50"],
        },
        {
          name: "a synced commit of node:sqlite, one row, p50 / one fdatasync p50",
          unit: "x",
          values: ratios(values.commit, values.sync),
        },
        {
          name: "the least that parses, appends, syncs and answers, p50 / one fdatasync p50",
          unit: "x",
          values: ratios(values.bare, values.sync),
        },
        { name: "accepted p50 / the least", unit: "x", values: ratios(values.ack, values.bare) },
        { name: "accepted p50 / a commit of node:sqlite", unit: "x", values: ratios(values.ack, values.commit) },
        { name: "accepted p50 (1 client, one at a time)", unit: "us", values: values.ack },
        { name: "4 KiB appended and fdatasync, p50", unit: "us", values: values.sync },
        { name: `accepted, 1 client, ${inFlight} in flight`, unit: "1/s", values: values.grouped },
        { name: `accepted, ${clients} clients, 5 in flight each`, unit: "1/s", values: values.sixteen },
      ],
      notes: [
        `${single} pushes of ${content.length} bytes for each p50, ${many} for each rate, on ${sessions} sessions`,
      ],
    };
  },
};

/** The same with 5 ms more for each sync, where sharing the sync matters. */
export const pushAcceptanceOnSlowDisk: Figure = {
  title: "Pushes accepted with 5 ms more for each sync",
  goals: ["P16 group", "Q4 group"],
  repetitions: 5,
  measure: async (setting, resources) => {
    const env = await slowDisk(setting);
    if (env === undefined) {
      const reason = "the library that delays each sync needs a C compiler";
      return { rows: [], notes: [reason], unmeasured: { "P16 group": reason, "Q4 group": reason } };
    }
    const [slow] = await startPushers(setting, resources, { clients: 1, env });
    if (slow === undefined) throw new Error("No client is connected.");
    const rates = await interleave(setting.repetitions, {
      alone: () => pushRate([slow], 100, 1),
      grouped: () => pushRate([slow], 2_000, inFlight),
    });
    if (median(rates.alone) > 1_000 / slowSyncMs)
      throw new Error(`${Math.round(median(rates.alone))} pushes/s, one at a time: the syncs are not delayed.`);
    return {
      rows: [
        {
          name: `pushes/s: ${inFlight} in flight / one at a time`,
          unit: "x",
          values: ratios(rates.grouped, rates.alone),
          goals: ["P16 group", "Q4 group"],
        },
        { name: `${inFlight} in flight`, unit: "1/s", values: rates.grouped },
        { name: "one at a time", unit: "1/s", values: rates.alone },
      ],
      notes: [`a preloaded library adds ${slowSyncMs} ms to each fsync and fdatasync of the daemon`],
    };
  },
};

type Pusher = () => Promise<unknown>;

async function startPushers(
  setting: Setting,
  resources: Resources,
  options: { readonly clients: number; readonly env?: Readonly<Record<string, string>> },
): Promise<readonly Pusher[]> {
  const { clients: count, env = {} } = options;
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi, env });
  const opened = await Promise.all(Array.from({ length: count }, () => RawClient.open(daemon, "unix", resources)));
  const [first] = opened;
  if (first === undefined) return [];
  const ids: string[] = [];
  for (let i = 0; i < sessions; i += 1) {
    ids.push((await first.request("session/create", { cwd: setting.directory })).sessionId);
  }
  let next = 0;
  return opened.map((client) => () => {
    next += 1;
    const sessionId = ids[next % ids.length] ?? "";
    return client.request("delivery/push", { sessionId, customType: "bench", content });
  });
}

async function ackMicroseconds(push: Pusher, count: number): Promise<number> {
  const samples = new Float64Array(count);
  for (let i = 0; i < count; i += 1) {
    const startedAt = performance.now();
    await push();
    samples[i] = (performance.now() - startedAt) * 1_000;
  }
  return median(samples);
}

/** Pushes per second with this many in flight for each client. */
async function pushRate(pushers: readonly Pusher[], count: number, each: number): Promise<number> {
  let left = count;
  const startedAt = performance.now();
  const work = async (push: Pusher): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await push();
    }
  };
  const all = Promise.all(pushers.flatMap((push) => Array.from({ length: each }, () => work(push))));
  await within(60, () => `${left} of ${count} pushes`, all);
  return count / ((performance.now() - startedAt) / 1_000);
}
