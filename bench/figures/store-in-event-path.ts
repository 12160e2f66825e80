import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import type { PiCommand } from "../../client/index.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { slowDisk } from "../lib/disk.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { interleave, median, quantile, ratios } from "../lib/statistics.ts";

const pushesPerSecond = 500;
const ticks = 2_000;
const everyMs = 2;
/** Time for the store to start its writing thread. */
const warmUpMs = 1_500;
const pusher = join(import.meta.dirname, "..", "lib", "pusher.ts");

/** The latency of one session's events while pushes go to another: storing them must not delay the events. */
export const storeInEventPath: Figure = {
  title: "Latency of events with and without concurrent durable pushes",
  goals: [],
  repetitions: 3,
  measure: async (setting, resources) => {
    const rows = await measureOn("this disk", setting, resources, {});
    const slow = await slowDisk(setting);
    if (slow !== undefined) rows.push(...(await measureOn("a disk with 5 ms more a sync", setting, resources, slow)));
    return {
      rows,
      notes: [
        `${ticks} events for each value, one every ${everyMs} ms, from the child's clock to the client's`,
        `${pushesPerSecond} pushes a second by a separate process to another session: each is stored twice`,
      ],
    };
  },
};

async function measureOn(
  disk: string,
  setting: Setting,
  resources: Resources,
  env: Readonly<Record<string, string>>,
): Promise<Row[]> {
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi, env });
  const client = await RawClient.open(daemon, "unix", resources);
  const create = async () => (await client.request("session/create", { cwd: setting.directory })).sessionId;
  const [watched, pushed] = [await create(), await create()];
  await client.request("session/subscribe", { sessionId: watched });
  const p50 = { without: [] as number[], with: [] as number[] };
  const accepted: number[] = [];
  const values = await interleave(setting.repetitions, {
    without: () => latency(client, watched, p50.without),
    with: async () => {
      const child = spawn(
        process.execPath,
        [...process.execArgv, pusher, daemon.socketPath, daemon.token, pushed, `${pushesPerSecond}`],
        { stdio: ["pipe", "pipe", "inherit"] },
      );
      const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
      await within(20, "the start of the pusher", lines.next());
      await sleep(warmUpMs);
      const value = await latency(client, watched, p50.with);
      child.stdin.end();
      accepted.push(Number((await within(20, "the pusher's end", lines.next())).value));
      return value;
    },
  });
  for (const dropped of [p50.without, p50.with, accepted]) dropped.shift();
  return [
    { name: `${disk}: p99 with pushes / without`, unit: "x", values: ratios(values.with, values.without) },
    { name: `${disk}: p50 with pushes / without`, unit: "x", values: ratios(p50.with, p50.without) },
    { name: `${disk}: p99 without`, unit: "us", values: values.without },
    { name: `${disk}: p99 with`, unit: "us", values: values.with },
    { name: `${disk}: pushes accepted meanwhile`, unit: "1/s", values: accepted },
  ];
}

/** Microseconds of the 99th percentile; the median is appended to `p50`. */
async function latency(client: RawClient, sessionId: string, p50: number[]): Promise<number> {
  const samples: number[] = [];
  const all = Promise.withResolvers<void>();
  client.onEvent = (frame) => {
    const at = frame.indexOf('"tickAt":"');
    if (at === -1) return;
    const text = frame.toString("latin1", at + 10, frame.indexOf('"', at + 10));
    samples.push(Number(process.hrtime.bigint() - BigInt(text)) / 1_000);
    if (samples.length === ticks) all.resolve();
  };
  const command: PiCommand = { type: "tick", everyMs, count: ticks };
  await client.request("session/command", { sessionId, command });
  await within(60, () => `${ticks - samples.length} of ${ticks} events`, all.promise);
  p50.push(median(samples));
  return quantile(samples, 0.99);
}
