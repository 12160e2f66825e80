import { join } from "node:path";
import type { PiCommand } from "../../client/index.ts";
import { deltas, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure } from "../lib/figure.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { Readers } from "../lib/readers.ts";
import { interleave, ratios } from "../lib/statistics.ts";

/** The daemon's processor time for a record, when one client reads all and when it is slower than the child. */
export const overload: Figure = {
  title: "Records that are merged for a slow reader, against records that are not",
  goals: ["Q7"],
  repetitions: 5,
  measure: async (setting, resources) => {
    const corpus = writeCorpus(join(setting.directory, "deltas.jsonl"), deltas(60_000));
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const control = await RawClient.open(daemon, "unix", resources);
    const counted = { merged: 0, unmerged: 0, lost: 0 };
    /** Processor time for a record, from the first one to the last one's arrival. */
    const measurement = async (kind: "merged" | "unmerged"): Promise<() => Promise<number>> => {
      const { sessionId } = await control.request("session/create", { cwd: setting.directory });
      const task = { kind: "clients", daemon, sessions: [sessionId], clients: 1, checks: true } as const;
      const readers = await Readers.start(task, resources);
      let before = await readers.received();
      const emit = async (start: number, end: number): Promise<void> => {
        const command: PiCommand = { type: "emit", file: corpus.file, start, end };
        await control.request("session/command", { sessionId, command });
      };
      return async () => {
        const cpuBefore = cpuMicroseconds(daemon.pid);
        let expected = before.records;
        if (kind === "unmerged") {
          for (const { start, end, records } of corpus.bursts) {
            await emit(start, end);
            expected += records;
            await readers.received(expected);
          }
        } else {
          // The child writes everything while the client does not read.
          readers.pause();
          await emit(0, corpus.bytes);
          readers.resume();
          expected += corpus.records;
        }
        const after = await readers.received(expected);
        const cpu = (cpuMicroseconds(daemon.pid) - cpuBefore) / corpus.records;
        counted[kind] += after.merged - before.merged;
        counted.lost += after.lost - before.lost;
        before = after;
        return cpu;
      };
    };
    const cpu = await interleave(setting.repetitions, {
      unmerged: await measurement("unmerged"),
      merged: await measurement("merged"),
    });
    const turns = setting.repetitions + 1;
    if (counted.merged === 0) throw new Error("No delta was merged, although the client did not read.");
    return {
      rows: [
        {
          name: "CPU of the daemon for a record: merged / unmerged",
          unit: "x",
          values: ratios(cpu.merged, cpu.unmerged),
          goals: ["Q7"],
        },
        { name: "merged: CPU of the daemon for a record", unit: "us", values: cpu.merged },
        { name: "unmerged: CPU of the daemon for a record", unit: "us", values: cpu.unmerged },
      ],
      notes: [
        `${corpus.records} deltas for each value; merged: the client reads after the child has written all`,
        `merged in each turn: ${Math.round(counted.merged / turns)}, and ${Math.round(counted.unmerged / turns)} on the other side; lost: ${counted.lost}`,
      ],
    };
  },
};
