import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { type RealPi, realPis, scriptModel, startPiDirectly } from "../lib/real-pi.ts";
import { interleave, median } from "../lib/statistics.ts";

export const coldCreate: Figure = {
  title: "A new session with a real pi, against starting the same pi",
  repetitions: 7,
  measure: async (setting, resources) => {
    const rows: Row[] = [];
    for (const pi of realPis()) rows.push(...(await measurePi(pi, setting, resources)));
    return {
      rows,
      notes: ["direct: the same program and arguments, until it has answered get_state", "the ratio is one of medians"],
    };
  },
};

async function measurePi(pi: RealPi, setting: Setting, resources: Resources): Promise<Row[]> {
  const { env } = await scriptModel(setting, resources);
  const daemon = await startDaemonUnderTest(setting, resources, { pi: pi.path, env });
  const client = await RawClient.open(daemon, "unix", resources);
  const times = await interleave(setting.repetitions, {
    direct: async () => {
      const startedAt = performance.now();
      const child = startPiDirectly(pi, setting, env);
      try {
        await child.request({ type: "get_state" });
        return performance.now() - startedAt;
      } finally {
        await child.stop();
      }
    },
    daemon: async () => {
      const startedAt = performance.now();
      const { sessionId } = await client.request("session/create", { cwd: setting.directory });
      const took = performance.now() - startedAt;
      await client.request("session/close", { sessionId });
      return took;
    },
  });
  return [
    {
      name: `pi ${pi.version}: session/create / direct`,
      unit: "x",
      values: [median(times.daemon) / median(times.direct)],
      goal: { id: "P13", sense: "at most", target: 1.15, stretch: 1.05 },
    },
    { name: `pi ${pi.version}: direct`, unit: "ms", values: times.direct },
    { name: `pi ${pi.version}: session/create`, unit: "ms", values: times.daemon },
  ];
}
