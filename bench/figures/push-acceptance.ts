import { closeSync, fdatasyncSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { slowDisk } from "../lib/slow-disk.ts";
import { interleave, median, ratios } from "../lib/statistics.ts";

const single = 1_000;
const inFlight = 50;
const many = 8_000;
const clients = 16;
const sessions = 8;
const content = "x".repeat(300);

/** Pushes that are answered when they are on disk. Every rate includes writing their settled states. */
export const pushAcceptance: Figure = {
  title: "Pushes accepted: on disk before the answer",
  repetitions: 5,
  measure: async (setting, resources) => {
    const pushers = await startPushers(setting, resources, { clients });
    const [first] = pushers;
    if (first === undefined) throw new Error("No client is connected.");
    const values = await interleave(setting.repetitions, {
      sync: async () => syncMicroseconds(join(setting.directory, "sync")),
      ack: () => ackMicroseconds(first),
      alone: async () => 1_000_000 / (await ackMicroseconds(first)),
      grouped: () => pushRate([first], many, inFlight),
      sixteen: () => pushRate(pushers, many, inFlight / 10),
    });
    const rows: Row[] = [
      {
        name: "accepted p50 (1 client, one at a time) / one fdatasync p50",
        unit: "x",
        values: ratios(values.ack, values.sync),
        goal: { id: "P16", sense: "at most", target: 3, stretch: 2 },
      },
      {
        name: `this disk: pushes/s with ${inFlight} in flight / one at a time`,
        unit: "x",
        values: ratios(values.grouped, values.alone),
      },
      { name: "accepted p50 (1 client, one at a time)", unit: "us", values: values.ack },
      { name: "4 KiB written and fdatasync, p50", unit: "us", values: values.sync },
      { name: `accepted, 1 client, ${inFlight} in flight`, unit: "1/s", values: values.grouped },
      { name: `accepted, ${clients} clients, 5 in flight each`, unit: "1/s", values: values.sixteen },
    ];
    return {
      rows: [...rows, ...(await onSlowDisk(setting, resources))],
      notes: [`pushes of ${content.length} bytes, ${many} of them for each rate, on ${sessions} sessions`],
    };
  },
};

/** The same on a disk with 5 ms for each sync, where sharing the sync matters. */
async function onSlowDisk(setting: Setting, resources: Resources): Promise<Row[]> {
  const under = await slowDisk();
  if (under === undefined) return [];
  const [slow] = await startPushers(setting, resources, { clients: 1, under });
  if (slow === undefined) return [];
  const rates = await interleave(setting.repetitions, {
    alone: async () => pushRate([slow], 100, 1),
    grouped: () => pushRate([slow], 3_000, inFlight),
  });
  return [
    {
      name: `a disk with 5 ms a sync: pushes/s with ${inFlight} in flight / one at a time`,
      unit: "x",
      values: ratios(rates.grouped, rates.alone),
      goal: { id: "P16", sense: "at least", target: 10, stretch: 25 },
    },
    { name: `a disk with 5 ms a sync: ${inFlight} in flight`, unit: "1/s", values: rates.grouped },
  ];
}

type Pusher = () => Promise<unknown>;

async function startPushers(
  setting: Setting,
  resources: Resources,
  options: { readonly clients: number; readonly under?: readonly string[] },
): Promise<readonly Pusher[]> {
  const { clients: count, under = [] } = options;
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi, under });
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

async function ackMicroseconds(push: Pusher): Promise<number> {
  const samples = new Float64Array(single);
  for (let i = 0; i < single; i += 1) {
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
  await Promise.all(pushers.flatMap((push) => Array.from({ length: each }, () => work(push))));
  return count / ((performance.now() - startedAt) / 1_000);
}

function syncMicroseconds(file: string): number {
  const descriptor = openSync(file, "w");
  const page = Buffer.alloc(4_096, 1);
  const samples = new Float64Array(single);
  for (let i = 0; i < single; i += 1) {
    const startedAt = performance.now();
    writeSync(descriptor, page);
    fdatasyncSync(descriptor);
    samples[i] = (performance.now() - startedAt) * 1_000;
  }
  closeSync(descriptor);
  return median(samples);
}
