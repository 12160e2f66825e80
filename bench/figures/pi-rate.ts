import { join } from "node:path";
import { answer } from "../../provider/reply.ts";
import { deltas, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { DirectChild } from "../lib/direct-child.ts";
import { drain } from "../lib/drain.ts";
import { echoPi, rawSource } from "../lib/echo-sources.ts";
import type { Figure } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { chosenPi, scriptModel } from "../lib/real-pi.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const pieces = 5_000;

/** Whether the daemon can keep up with pi. */
export const piRate: Figure = {
  title: "Events of one session through the daemon, against what one pi emits",
  goals: ["P5"],
  repetitions: 3,
  measure: async (setting, resources) => {
    const pi = chosenPi();
    const words = Array.from({ length: pieces }, (_, i) => `word ${i} `);
    const { env } = await scriptModel(setting, resources, { otherwise: () => answer(...words) });
    const child = DirectChild.start({ args: [pi.path, "--mode", "rpc"], cwd: setting.directory, env }, resources);
    await within(30, "pi's answer to get_state", child.request({ type: "get_state" }));
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const client = await RawClient.open(daemon, "unix", resources);
    const { sessionId } = await client.request("session/create", { cwd: setting.directory });
    await client.request("session/subscribe", { sessionId });
    const source = rawSource(client, sessionId);
    const corpus = writeCorpus(join(setting.directory, "deltas.jsonl"), deltas(100_000));
    const rates = await interleave(setting.repetitions, {
      pi: async () => {
        const settled = Promise.withResolvers<void>();
        let records = 0;
        let startedAt = 0;
        let endedAt = 0;
        child.onRecord = ({ type }) => {
          if (type === "agent_settled") settled.resolve();
          if (type !== "message_update") return;
          if (records === 0) startedAt = performance.now();
          endedAt = performance.now();
          records += 1;
        };
        await child.request({ type: "prompt", message: "Hello." });
        await within(60, () => `the end of pi's run, after ${records} events`, settled.promise);
        return (records - 1) / ((endedAt - startedAt) / 1_000);
      },
      daemon: async () => corpus.records / (await drain(source, corpus)).seconds,
    });
    return {
      rows: [
        {
          name: "through the daemon / what one pi emits",
          unit: "x",
          values: ratios(rates.daemon, rates.pi),
          goals: ["P5"],
        },
        { name: "through the daemon", unit: "rec/s", values: rates.daemon },
        { name: "what one pi emits", unit: "rec/s", values: rates.pi },
      ],
      notes: [`pi ${pi.version} with an answer of ${pieces} pieces, read directly; a stand-in writes for the daemon`],
    };
  },
};
