import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { DirectChild } from "../lib/direct-child.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { poolIsFull } from "../lib/pool.ts";
import { RawClient } from "../lib/raw-client.ts";
import { chosenPi, type RealPi, realPis, scriptModel } from "../lib/real-pi.ts";
import { interleave, median, ratios } from "../lib/statistics.ts";

const checkout = join(import.meta.dirname, "..", "..", "cli", "main.ts");
const atOnce = 10;

export const create: Figure = {
  title: "A new session of real pi: cold against spawning pi, warm against cold and against a bare switch_session",
  goals: ["P13", "P14", "Q10 create", "Q11"],
  repetitions: 9,
  measure: async (setting, resources) => {
    const rows: Row[] = [];
    for (const pi of realPis()) rows.push(...(await measurePi(pi, setting, resources)));
    return {
      rows,
      notes: [
        "spawning pi: from its start until it answers get_state; the empty extension has no handler",
        "the pool is full before each value: no warm child starts meanwhile",
      ],
    };
  },
};

export const parallelCreates: Figure = {
  title: `${atOnce} new sessions of real pi at once`,
  goals: ["P15 all", "P15 first"],
  repetitions: 3,
  measure: async (setting, resources) => {
    const pi = chosenPi();
    const { env } = await scriptModel(setting, resources);
    const limited = await clientOf(setting, resources, { pi: pi.path, env });
    const unlimited = await clientOf(setting, resources, {
      pi: pi.path,
      env: { ...env, PI_RPCD_MAX_PARALLEL_STARTS: String(atOnce) },
    });
    const first: number[] = [];
    const batch = async (client: RawClient, firsts: number[]): Promise<number> => {
      const startedAt = performance.now();
      const took = await Promise.all(Array.from({ length: atOnce }, () => createOne(client, setting, startedAt)));
      for (const { sessionId } of took) await client.request("session/close", { sessionId });
      firsts.push(Math.min(...took.map(({ ms }) => ms)));
      return Math.max(...took.map(({ ms }) => ms));
    };
    const times = await interleave(setting.repetitions, {
      alone: () => createAndClose(limited, setting),
      limited: () => batch(limited, first),
      unlimited: () => batch(unlimited, []),
    });
    first.shift();
    return {
      rows: [
        {
          name: "total / with all starting at once",
          unit: "x",
          values: ratios(times.limited, times.unlimited),
          goals: ["P15 all"],
        },
        { name: "the first / one alone", unit: "x", values: ratios(first, times.alone), goals: ["P15 first"] },
        { name: "total", unit: "ms", values: times.limited },
        { name: "total with all starting at once", unit: "ms", values: times.unlimited },
        { name: "one alone", unit: "ms", values: times.alone },
      ],
      notes: [`pi ${pi.version}, without warm children`],
    };
  },
};

async function measurePi(pi: RealPi, setting: Setting, resources: Resources): Promise<Row[]> {
  const { env } = await scriptModel(setting, resources);
  const extension = join(setting.directory, `empty-${pi.version}.mjs`);
  writeFileSync(extension, "export default function () {}\n");
  const built = await clientOf(setting, resources, { pi: pi.path, env });
  const sources = await clientOf(setting, resources, { pi: pi.path, env, program: checkout });
  const pooled = await clientOf(setting, resources, { pi: pi.path, env: { ...env, PI_RPCD_WARM_CHILDREN: "1" } });
  const options = { cwd: setting.directory, env };
  const spawned = async (...more: readonly string[]): Promise<number> => {
    const startedAt = performance.now();
    const child = DirectChild.start({ ...options, args: [pi.path, "--mode", "rpc", ...more] }, resources);
    await within(30, "pi's answer to get_state", child.request({ type: "get_state" }));
    const took = performance.now() - startedAt;
    await child.stop();
    return took;
  };
  const switched = await switching(pi, setting, resources, env);
  // The second request of a kind starts its pool.
  for (let i = 0; i < 2; i += 1) await createAndClose(pooled, setting);
  /** Before every side, so that the pool's start slows none of them. */
  const rested = (act: () => Promise<number>) => async (): Promise<number> => {
    await poolIsFull(pooled);
    return await act();
  };
  const times = await interleave(setting.repetitions, {
    spawned: rested(() => spawned()),
    built: rested(() => createAndClose(built, setting)),
    extended: rested(() => spawned("-e", extension)),
    sources: rested(() => createAndClose(sources, setting)),
    warm: rested(() => createAndClose(pooled, setting)),
    switched: rested(switched),
  });
  const name = `pi ${pi.version}:`;
  return [
    {
      name: `${name} cold, built / spawning pi`,
      unit: "x",
      values: ratios(times.built, times.spawned),
      goals: ["P13", "Q11"],
    },
    {
      name: `${name} cold, checkout / spawning pi`,
      unit: "x",
      values: ratios(times.sources, times.spawned),
      goals: ["Q11"],
    },
    { name: `${name} with an empty extension / spawning pi`, unit: "x", values: ratios(times.extended, times.spawned) },
    { name: `${name} cold, built / with an empty extension`, unit: "x", values: ratios(times.built, times.extended) },
    {
      name: `${name} cold, checkout / with an empty extension`,
      unit: "x",
      values: ratios(times.sources, times.extended),
    },
    { name: `${name} warm / cold`, unit: "x", values: [median(times.warm) / median(times.built)], goals: ["P14"] },
    {
      name: `${name} warm / a bare switch_session, p50`,
      unit: "x",
      values: [median(times.warm) / median(times.switched)],
      goals: ["Q10 create"],
    },
    { name: `${name} spawning pi`, unit: "ms", values: times.spawned },
    { name: `${name} spawning pi with an empty extension`, unit: "ms", values: times.extended },
    { name: `${name} cold, built`, unit: "ms", values: times.built },
    { name: `${name} cold, checkout`, unit: "ms", values: times.sources },
    { name: `${name} warm`, unit: "ms", values: times.warm },
    { name: `${name} a bare switch_session`, unit: "ms", values: times.switched },
  ];
}

/** What a warm create must do at least: the same pi switches to a file that has only a header. */
async function switching(
  pi: RealPi,
  setting: Setting,
  resources: Resources,
  env: Readonly<Record<string, string>>,
): Promise<() => Promise<number>> {
  const directory = join(setting.directory, `switch-${pi.version}`);
  mkdirSync(directory);
  return async () => {
    const args = [pi.path, "--mode", "rpc", "--no-session"];
    const child = DirectChild.start({ args, cwd: setting.directory, env }, resources);
    await within(30, "pi's answer to get_state", child.request({ type: "get_state" }));
    const id = randomUUID();
    const header = { type: "session", version: 3, id, timestamp: new Date().toISOString(), cwd: setting.directory };
    const sessionPath = join(directory, `${id}.jsonl`);
    writeFileSync(sessionPath, `${JSON.stringify(header)}\n`);
    // As warm children of the pool, it is idle at first.
    await sleep(200);
    const startedAt = performance.now();
    await within(30, "pi's answer to switch_session", child.request({ type: "switch_session", sessionPath }));
    const took = performance.now() - startedAt;
    await child.stop();
    return took;
  };
}

async function clientOf(
  setting: Setting,
  resources: Resources,
  options: Parameters<typeof startDaemonUnderTest>[2],
): Promise<RawClient> {
  return await RawClient.open(await startDaemonUnderTest(setting, resources, options), "unix", resources);
}

async function createOne(client: RawClient, { directory }: Setting, startedAt: number) {
  const { sessionId } = await client.request("session/create", { cwd: directory });
  return { sessionId, ms: performance.now() - startedAt };
}

async function createAndClose(client: RawClient, setting: Setting): Promise<number> {
  const { sessionId, ms } = await createOne(client, setting, performance.now());
  await client.request("session/close", { sessionId });
  return ms;
}
