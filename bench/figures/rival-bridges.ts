import { join } from "node:path";
import { deltas, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { drain } from "../lib/drain.ts";
import { echoPi, rawSource } from "../lib/echo-sources.ts";
import type { Figure, Row } from "../lib/figure.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { type RunningRival, rivals, startRival } from "../lib/rivals.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const goals: Readonly<Record<string, readonly [target: number, stretch: number]>> = {
  websocketd: [2, 4],
  supergateway: [2.5, 5],
  "stdio-to-ws": [4, 10],
};

/** The same records of the same child to the same kind of client, over loopback TCP. */
export const rivalBridges: Figure = {
  title: "Throughput against bridges from stdio to a WebSocket",
  repetitions: 5,
  measure: async (setting, resources) => {
    const corpus = writeCorpus(join(setting.directory, "small.jsonl"), deltas(60_000));
    const notes = ["the bridges of npm are installed for this run alone, and log nothing"];
    const running: Record<string, RunningRival> = {};
    for (const rival of rivals) {
      try {
        const command = await rival.install(join(setting.directory, "rivals"));
        running[rival.name] = await startRival(rival, command, resources);
      } catch (error) {
        notes.push(`${rival.name} was not run: ${(error as Error).message}`);
      }
    }
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const client = await RawClient.open(daemon, "tcp", resources);
    const { sessionId } = await client.request("session/create", { cwd: setting.directory });
    await client.request("session/subscribe", { sessionId });
    const all: Readonly<Record<string, RunningRival>> = {
      "pi-rpcd": { source: rawSource(client, sessionId), pid: daemon.pid },
      ...running,
    };
    const cpu: Record<string, number[]> = {};
    const measurements = Object.entries(all).map(([name, { source, pid }]) => {
      cpu[name] = [];
      const measure = async (): Promise<number> => {
        const before = cpuMicroseconds(pid) ?? Number.NaN;
        const seconds = await drain(source, corpus);
        cpu[name]?.push(((cpuMicroseconds(pid) ?? Number.NaN) - before) / corpus.records);
        return corpus.records / seconds;
      };
      return [name, measure] as const;
    });
    const rates: Readonly<Record<string, readonly number[]>> = await interleave(
      setting.repetitions,
      Object.fromEntries(measurements),
    );
    for (const values of Object.values(cpu)) values.shift();
    const of = (name: string): readonly number[] => rates[name] ?? [];
    const names = Object.keys(running);
    const rows = names.map((name): Row => {
      const [target, stretch] = goals[name] ?? [1, 1];
      const goal = { id: "P4", sense: "at least", target, stretch } as const;
      return { name: `events a second / ${name}`, unit: "x", values: ratios(of("pi-rpcd"), of(name)), goal };
    });
    return {
      rows: [
        ...rows,
        ...names.map((name): Row => {
          const values = ratios(cpu["pi-rpcd"] ?? [], cpu[name] ?? []);
          return { name: `CPU for an event / ${name}`, unit: "x", values };
        }),
        ...Object.keys(all).map((name): Row => ({ name, unit: "rec/s", values: of(name) })),
      ],
      notes,
    };
  },
};
