import { join } from "node:path";
import { type Corpus, largeRecord, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { drain, type RecordSource } from "../lib/drain.ts";
import { directSource, echoPi, rawSource, startEchoDirectly } from "../lib/echo-sources.ts";
import type { Figure } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const totalBytes = 64_000_000;

/**
 * Whether large records cost more per byte than small ones: a splitter that scans data twice takes quadratic time.
 */
export const recordSize: Figure = {
  title: "Linear in the size of a record: 8 MB against 100 KB",
  repetitions: 5,
  measure: async (setting, resources) => {
    const small = records("100k.jsonl", 100_000);
    const large = records("8m.jsonl", 8_000_000);
    function records(name: string, bytes: number): Corpus {
      return writeCorpus(join(setting.directory, name), Array<string>(totalBytes / bytes).fill(largeRecord(bytes)));
    }
    const direct = directSource(startEchoDirectly(resources));
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const client = await RawClient.open(daemon, "unix", resources);
    const { sessionId } = await client.request("session/create", { cwd: setting.directory });
    await client.request("session/subscribe", { sessionId });
    const daemons = rawSource(client, sessionId);
    const rates = await interleave(setting.repetitions, {
      directSmall: () => rate(direct, small),
      directLarge: () => rate(direct, large),
      daemonSmall: () => rate(daemons, small),
      daemonLarge: () => rate(daemons, large),
    });
    return {
      rows: [
        {
          name: "MB/s at 8 MB / MB/s at 100 KB, through the daemon",
          unit: "x",
          values: ratios(rates.daemonLarge, rates.daemonSmall),
          goal: { id: "P6", sense: "at least", target: 0.7, stretch: 0.9 },
        },
        { name: "the same, direct", unit: "x", values: ratios(rates.directLarge, rates.directSmall) },
        { name: "100 KB through the daemon", unit: "MB/s", values: rates.daemonSmall },
        { name: "8 MB through the daemon", unit: "MB/s", values: rates.daemonLarge },
        { name: "100 KB direct", unit: "MB/s", values: rates.directSmall },
        { name: "8 MB direct", unit: "MB/s", values: rates.directLarge },
      ],
      notes: [`${totalBytes / 1_000_000} MB of tool results for each value`],
    };
  },
};

async function rate(source: RecordSource, corpus: Corpus): Promise<number> {
  return corpus.bytes / 1_000_000 / (await drain(source, corpus));
}
