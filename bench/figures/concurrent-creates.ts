import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { type RealPi, realPis, scriptModel, startPiDirectly } from "../lib/real-pi.ts";
import { interleave, median, ratios } from "../lib/statistics.ts";

const count = 10;

export const concurrentCreates: Figure = {
  title: `${count} new sessions at once with real pi, against starting as many pi at once`,
  repetitions: 5,
  measure: async (setting, resources) => {
    const rows: Row[] = [];
    for (const pi of realPis()) rows.push(...(await measurePi(pi, setting, resources)));
    return { rows, notes: ["direct: the same program and arguments, all at once, until each has answered get_state"] };
  },
};

async function measurePi(pi: RealPi, setting: Setting, resources: Resources): Promise<Row[]> {
  const { env } = await scriptModel(setting, resources);
  const daemon = await startDaemonUnderTest(setting, resources, { pi: pi.path, env });
  const client = await RawClient.open(daemon, "unix", resources);
  const first: number[] = [];
  const create = async (howMany: number): Promise<readonly [first: number, all: number]> => {
    const startedAt = performance.now();
    const created = Array.from({ length: howMany }, () => client.request("session/create", { cwd: setting.directory }));
    await Promise.race(created);
    const one = performance.now() - startedAt;
    const sessions = await Promise.all(created);
    const all = performance.now() - startedAt;
    await Promise.all(sessions.map(({ sessionId }) => client.request("session/close", { sessionId })));
    return [one, all];
  };
  const times = await interleave(setting.repetitions, {
    direct: async () => {
      const startedAt = performance.now();
      const children = Array.from({ length: count }, () => startPiDirectly(pi, setting, env));
      await Promise.all(children.map((child) => child.request({ type: "get_state" })));
      const took = performance.now() - startedAt;
      await Promise.all(children.map((child) => child.stop()));
      return took;
    },
    one: async () => (await create(1))[1],
    daemon: async () => {
      const [one, all] = await create(count);
      first.push(one);
      return all;
    },
  });
  return [
    {
      name: `pi ${pi.version}: all ${count} ready / direct, all at once`,
      unit: "x",
      values: [median(times.daemon) / median(times.direct)],
      goal: { id: "P15", sense: "at most", target: 1.1, stretch: 1 },
    },
    {
      name: `pi ${pi.version}: the first of ${count} ready / one alone`,
      unit: "x",
      values: ratios(first.slice(1), times.one),
      goal: { id: "P15", sense: "at most", target: 1.5, stretch: 1.2 },
    },
    { name: `pi ${pi.version}: all ${count} ready`, unit: "ms", values: times.daemon },
    { name: `pi ${pi.version}: direct, all at once`, unit: "ms", values: times.direct },
    { name: `pi ${pi.version}: one alone`, unit: "ms", values: times.one },
  ];
}
