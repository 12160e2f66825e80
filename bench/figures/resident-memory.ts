import { setTimeout as sleep } from "node:timers/promises";
import { ResourceStack } from "../../server/lib/resource-stack.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Row, Setting } from "../lib/figure.ts";
import { type Memory, memoryOf } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";

const manySessions = 11;
/** Long enough to collect the garbage of the start. */
const restMs = 1_500;

interface Stages {
  readonly none: Memory;
  readonly one: Memory;
  readonly many: Memory;
}

export const residentMemory: Figure = {
  title: "The daemon's resident memory, without its children's",
  repetitions: 3,
  measure: async (setting) => {
    const runs: Stages[] = [];
    for (let i = 0; i < setting.repetitions; i += 1) runs.push(await measureOnce(setting));
    const goal = { id: "memory", sense: "at most", target: 80 } as const;
    const rows: Row[] = [
      { name: "with one session and one client", unit: "MiB", values: runs.map(({ one }) => one.residentMiB), goal },
      { name: "with none", unit: "MiB", values: runs.map(({ none }) => none.residentMiB) },
      { name: "with one, of it anonymous", unit: "MiB", values: runs.map(({ one }) => one.anonymousMiB) },
      { name: "with none, of it anonymous", unit: "MiB", values: runs.map(({ none }) => none.anonymousMiB) },
      {
        name: "for each further idle session",
        unit: "KiB",
        values: runs.map(({ one, many }) => ((many.residentMiB - one.residentMiB) * 1_024) / (manySessions - 1)),
        goal: { id: "P11", sense: "at most", target: 250, stretch: 120 },
      },
    ];
    return { rows: Number.isNaN(rows[0]?.values[0]) ? [] : rows, notes: ["a new daemon for each repetition"] };
  },
};

async function measureOnce(setting: Setting): Promise<Stages> {
  const resources = new ResourceStack();
  try {
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const none = await rested(daemon.pid);
    const client = await RawClient.open(daemon, "unix", resources);
    const create = () => client.request("session/create", { cwd: setting.directory });
    const { sessionId } = await create();
    await client.request("session/subscribe", { sessionId });
    const one = await rested(daemon.pid);
    for (let i = 1; i < manySessions; i += 1) await create();
    const many = await rested(daemon.pid);
    return { none, one, many };
  } finally {
    await resources.release();
  }
}

async function rested(pid: number): Promise<Memory> {
  await sleep(restMs);
  return memoryOf(pid) ?? { residentMiB: Number.NaN, anonymousMiB: Number.NaN };
}
