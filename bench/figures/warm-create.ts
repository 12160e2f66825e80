import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { type RealPi, realPis, scriptModel } from "../lib/real-pi.ts";
import { interleave, median } from "../lib/statistics.ts";

export const warmCreate: Figure = {
  title: "A new session that takes a warm child, against one that starts its own",
  repetitions: 20,
  measure: async (setting, resources) => {
    const rows: Row[] = [];
    for (const pi of realPis()) rows.push(...(await measurePi(pi, setting, resources)));
    return { rows, notes: ["the ratio is one of medians; before each warm create, a child is ready"] };
  },
};

async function measurePi(pi: RealPi, setting: Setting, resources: Resources): Promise<Row[]> {
  const { env } = await scriptModel(setting, resources);
  const clientOf = async (warmChildren: string): Promise<RawClient> => {
    const daemon = await startDaemonUnderTest(setting, resources, {
      pi: pi.path,
      env: { ...env, PI_RPCD_WARM_CHILDREN: warmChildren },
    });
    return await RawClient.open(daemon, "unix", resources);
  };
  const cold = await clientOf("0");
  const warm = await clientOf("1");
  const create = async (client: RawClient): Promise<number> => {
    const startedAt = performance.now();
    const { sessionId } = await client.request("session/create", { cwd: setting.directory });
    const took = performance.now() - startedAt;
    await client.request("session/close", { sessionId });
    return took;
  };
  for (let i = 0; i < 2; i += 1) await create(warm);
  const times = await interleave(setting.repetitions, {
    cold: () => create(cold),
    warm: async () => {
      await ready(warm);
      return await create(warm);
    },
  });
  return [
    {
      name: `pi ${pi.version}: warm / cold`,
      unit: "x",
      values: [median(times.warm) / median(times.cold)],
      goal: { id: "P14", sense: "at most", target: 0.2, stretch: 0.08 },
    },
    { name: `pi ${pi.version}: cold`, unit: "ms", values: times.cold },
    { name: `pi ${pi.version}: warm`, unit: "ms", values: times.warm },
  ];
}

async function ready(client: RawClient): Promise<void> {
  for (;;) {
    const { warmChildren } = await client.request("daemon/info", {});
    if (Number(warmChildren) > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
