import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { DirectChild } from "../lib/direct-child.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { poolIsFull } from "../lib/pool.ts";
import { memoryOf } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { type RealPi, realPis, scriptModel } from "../lib/real-pi.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const bareClient = join(import.meta.dirname, "..", "fixtures", "bare-client.mjs");

export const frontEnd: Figure = {
  title: "pi-rpcd-pi in place of pi: from its start to the first response, and its memory",
  goals: ["F1 cold", "F1 warm", "F1 memory"],
  repetitions: 11,
  deadlineSeconds: 300,
  measure: async (setting, resources) => {
    const rows: Row[] = [];
    for (const pi of realPis()) rows.push(...(await measurePi(pi, setting, resources)));
    const bare = { ms: [] as number[], memory: [] as number[] };
    for (let i = 0; i < setting.repetitions; i += 1) await startBare(bare, setting, resources);
    return {
      rows: [
        ...rows,
        { name: "a bare Node with ws: its start", unit: "ms", values: bare.ms },
        { name: "a bare Node with ws: memory", unit: "MiB", values: bare.memory },
      ],
      notes: [
        "the first response is that to get_state; the daemon runs already",
        "warm: a child of the pool is ready before each value",
      ],
    };
  },
};

async function measurePi(pi: RealPi, setting: Setting, resources: Resources): Promise<Row[]> {
  const { env } = await scriptModel(setting, resources);
  const program = join(setting.dist, "cli", "rpc", "main.js");
  const memory: number[] = [];
  const first = async (path: string, more: Readonly<Record<string, string>> = {}): Promise<number> => {
    const startedAt = performance.now();
    const args = [path, "--mode", "rpc"];
    const child = DirectChild.start({ args, cwd: setting.directory, env: { ...env, ...more } }, resources);
    await within(30, "the answer to get_state", child.request({ type: "get_state" }));
    const took = performance.now() - startedAt;
    if (path === program) memory.push(memoryOf(child.pid).residentMiB);
    await child.stop();
    return took;
  };
  const served = async (warmChildren: string) => {
    const daemon = await startDaemonUnderTest(setting, resources, {
      pi: pi.path,
      env: { ...env, PI_RPCD_WARM_CHILDREN: warmChildren },
    });
    const client = await RawClient.open(daemon, "unix", resources);
    return { client, start: () => first(program, { PI_RPCD_STATE_DIR: daemon.stateDir, PI_RPCD_PI: pi.path }) };
  };
  const [cold, warm] = [await served("0"), await served("1")];
  // The second request of a kind starts its pool.
  for (let i = 0; i < 2; i += 1) await warm.start();
  const times = await interleave(setting.repetitions, {
    pi: () => first(pi.path),
    cold: () => cold.start(),
    warm: async () => {
      await poolIsFull(warm.client);
      return await warm.start();
    },
  });
  const name = `pi ${pi.version}:`;
  return [
    { name: `${name} cold / pi`, unit: "x", values: ratios(times.cold, times.pi), goals: ["F1 cold"] },
    { name: `${name} warm / pi`, unit: "x", values: ratios(times.warm, times.pi), goals: ["F1 warm"] },
    { name: `${name} pi`, unit: "ms", values: times.pi },
    { name: `${name} cold`, unit: "ms", values: times.cold },
    { name: `${name} warm`, unit: "ms", values: times.warm },
    { name: `${name} memory`, unit: "MiB", values: memory, goals: ["F1 memory"] },
  ];
}

/** What every front end costs that reaches the daemon with `ws`. */
async function startBare(
  into: { readonly ms: number[]; readonly memory: number[] },
  { directory }: Setting,
  resources: Resources,
): Promise<void> {
  const startedAt = performance.now();
  const started = spawn(process.execPath, [bareClient], { cwd: directory, stdio: ["pipe", "pipe", "ignore"] });
  const child = resources.add(started, (each) => void each.stdin.end());
  await within(30, "a bare Node", once(child.stdout, "data"));
  into.ms.push(performance.now() - startedAt);
  into.memory.push(memoryOf(child.pid ?? -1).residentMiB);
  const ended = once(child, "exit");
  child.stdin.end();
  await ended;
}
