import { join } from "node:path";
import type { PiCommand } from "../../client/index.ts";
import { ResourceStack } from "../../server/lib/resource-stack.ts";
import { deltas, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi } from "../lib/echo-sources.ts";
import type { Figure, Resources } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { median, quantile } from "../lib/statistics.ts";

const times = 100;

/** Time to the first envelope: connecting, subscribing with a cursor, and the first replayed event. */
export const attach: Figure = {
  title: "Attaching to a session with a long log",
  repetitions: 5,
  measure: async (setting, resources) => {
    const corpus = writeCorpus(join(setting.directory, "held.jsonl"), deltas(10_000));
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const client = await RawClient.open(daemon, "unix", resources);
    const { sessionId } = await client.request("session/create", { cwd: setting.directory });
    for (const { start, end } of corpus.bursts) {
      const command: PiCommand = { type: "emit", file: corpus.file, start, end };
      await client.request("session/command", { sessionId, command });
    }
    const { cursor } = await client.request("session/get", { sessionId });
    const once = async (after: number): Promise<number> => {
      const own: Resources & { release(): Promise<void> } = new ResourceStack();
      const startedAt = performance.now();
      const attached = await RawClient.open(daemon, "unix", own);
      const first = new Promise<void>((resolve) => {
        attached.onEvent = () => resolve();
      });
      attached.request("session/subscribe", { sessionId, after }).catch(() => {});
      await first;
      const took = performance.now() - startedAt;
      await own.release();
      return took;
    };
    const values = { near: [] as number[], nearP99: [] as number[], far: [] as number[] };
    for (let repetition = 0; repetition <= setting.repetitions; repetition += 1) {
      const near = await repeat(() => once(cursor - 10));
      const far = await repeat(() => once(cursor - 9_000));
      if (repetition === 0) continue;
      values.near.push(median(near));
      values.nearP99.push(quantile(near, 0.99));
      values.far.push(median(far));
    }
    return {
      rows: [
        { name: "to the first envelope, 10 missed events, p50", unit: "ms", values: values.near },
        { name: "to the first envelope, 10 missed events, p99", unit: "ms", values: values.nearP99 },
        { name: "to the first envelope, 9,000 missed events, p50", unit: "ms", values: values.far },
      ],
      notes: [`${times} clients for each value, one after the other, over the Unix socket`],
    };
  },
};

async function repeat(measure: () => Promise<number>): Promise<number[]> {
  const values: number[] = [];
  for (let i = 0; i < times; i += 1) values.push(await measure());
  return values;
}
