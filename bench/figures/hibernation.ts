import { setTimeout as sleep } from "node:timers/promises";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { memoryOf } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { type RealPi, realPis, scriptModel, startPiDirectly } from "../lib/real-pi.ts";
import { interleave, median } from "../lib/statistics.ts";

const stages = [1, 20, 200] as const;
/** Long enough to collect the garbage of the start. */
const restMs = 1_500;

/** The memory of a session without a pi, and the time to start one for it. */
export const hibernation: Figure = {
  title: "Hibernated sessions: the daemon's memory with them, and how long one takes to wake",
  repetitions: 7,
  measure: async (setting, resources) => {
    const rows: Row[] = [];
    for (const pi of realPis()) rows.push(...(await wake(pi, setting, resources)));
    return {
      rows: [...rows, ...(await memory(setting, resources))],
      notes: ["direct: the same program and arguments, until it has answered get_state; the ratio is one of medians"],
    };
  },
};

async function wake(pi: RealPi, setting: Setting, resources: Resources): Promise<Row[]> {
  const { env } = await scriptModel(setting, resources);
  const daemon = await startDaemonUnderTest(setting, resources, { pi: pi.path, env });
  const client = await RawClient.open(daemon, "unix", resources);
  const { sessionId } = await client.request("session/create", { cwd: setting.directory });
  const times = await interleave(setting.repetitions, {
    direct: async () => {
      const startedAt = performance.now();
      const child = startPiDirectly(pi, setting, env);
      await child.request({ type: "get_state" });
      const took = performance.now() - startedAt;
      await child.stop();
      return took;
    },
    wake: async () => {
      await client.request("session/hibernate", { sessionId });
      const startedAt = performance.now();
      await client.request("session/getState", { sessionId });
      return performance.now() - startedAt;
    },
  });
  return [
    {
      name: `pi ${pi.version}: wake / direct`,
      unit: "x",
      values: [median(times.wake) / median(times.direct)],
      goal: { id: "wake", sense: "at most", target: 1.3 },
    },
    { name: `pi ${pi.version}: wake`, unit: "ms", values: times.wake },
    { name: `pi ${pi.version}: direct`, unit: "ms", values: times.direct },
  ];
}

async function memory(setting: Setting, resources: Resources): Promise<Row[]> {
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
  const client = await RawClient.open(daemon, "unix", resources);
  const resident: number[] = [];
  let count = 0;
  for (const stage of stages) {
    for (; count < stage; count += 1) {
      const { sessionId } = await client.request("session/create", { cwd: setting.directory });
      await client.request("session/hibernate", { sessionId });
    }
    await sleep(restMs);
    resident.push(memoryOf(daemon.pid)?.residentMiB ?? Number.NaN);
  }
  const [, some = Number.NaN, many = Number.NaN] = resident;
  return [
    ...stages.map(
      (stage, i): Row => ({
        name: `with ${stage} hibernated`,
        unit: "MiB",
        values: [resident[i] ?? Number.NaN],
      }),
    ),
    {
      name: "for each further one after 20",
      unit: "KiB",
      values: [((many - some) * 1_024) / (stages[2] - stages[1])],
      goal: { id: "memory", sense: "at most", target: 100 },
    },
  ];
}
