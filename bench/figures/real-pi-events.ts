import { join } from "node:path";
import { answer } from "../../provider/reply.ts";
import { deltas, writeCorpus } from "../lib/corpus.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { drain } from "../lib/drain.ts";
import { echoPi, rawSource } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { type RealPi, realPis, scriptModel, startPiDirectly } from "../lib/real-pi.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const deltasPerRun = 12_000;
const text = "A few words, ";

export const realPiEvents: Figure = {
  title: "Events of a real pi that streams at full speed",
  repetitions: 5,
  measure: async (setting, resources) => {
    const corpus = writeCorpus(join(setting.directory, "small.jsonl"), deltas(100_000));
    const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
    const client = await RawClient.open(daemon, "unix", resources);
    const most = async (): Promise<number> => corpus.records / (await drain(source, corpus));
    const source = rawSource(client, await subscribed(client, setting));
    const rows: Row[] = [];
    for (const pi of realPis()) rows.push(...(await measurePi(pi, most, setting, resources)));
    return { rows, notes: [`${deltasPerRun} deltas in each run; pi's own speed limits both sides`] };
  },
};

async function measurePi(
  pi: RealPi,
  most: () => Promise<number>,
  setting: Setting,
  resources: Resources,
): Promise<Row[]> {
  const reply = answer(...Array<string>(deltasPerRun).fill(text));
  const { env } = await scriptModel(setting, resources, { otherwise: () => reply });
  const daemon = await startDaemonUnderTest(setting, resources, { pi: pi.path, env });
  const client = await RawClient.open(daemon, "unix", resources);
  const sessionId = await subscribed(client, setting);
  const child = resources.add(startPiDirectly(pi, setting, env), (started) => started.stop());
  const rates = await interleave(setting.repetitions, {
    direct: async () => {
      const run = new RunClock();
      child.onRecord = ({ type }) => run.saw(type);
      await child.request({ type: "prompt", message: "Go on." });
      return await run.rate;
    },
    daemon: async () => {
      const run = new RunClock();
      client.onEvent = (frame) => run.saw(typeIn(frame));
      await client.request("session/prompt", { sessionId, text: "Go on." });
      return await run.rate;
    },
    most,
  });
  return [
    {
      name: `pi ${pi.version}: the most that the daemon passes on / what this pi emits`,
      unit: "x",
      values: ratios(rates.most, rates.direct),
      goal: { id: "P5", sense: "at least", target: 3, stretch: 8 },
    },
    { name: `pi ${pi.version}: through the daemon / direct`, unit: "x", values: ratios(rates.daemon, rates.direct) },
    { name: `pi ${pi.version}: direct`, unit: "rec/s", values: rates.direct },
    { name: `pi ${pi.version}: through the daemon`, unit: "rec/s", values: rates.daemon },
  ];
}

async function subscribed(client: RawClient, { directory }: Setting): Promise<string> {
  const { sessionId } = await client.request("session/create", { cwd: directory });
  await client.request("session/subscribe", { sessionId });
  return sessionId;
}

/** Counts the updates of one run, from its first to its last. */
class RunClock {
  readonly #rate = Promise.withResolvers<number>();
  #updates = 0;
  #firstAt = 0;
  #lastAt = 0;

  get rate(): Promise<number> {
    return this.#rate.promise;
  }

  saw(type: string): void {
    if (type === "message_update") {
      this.#lastAt = performance.now();
      if (this.#updates === 0) this.#firstAt = this.#lastAt;
      this.#updates += 1;
    } else if (type === "agent_settled") {
      this.#rate.resolve((this.#updates - 1) / ((this.#lastAt - this.#firstAt) / 1_000));
    }
  }
}

const eventKey = Buffer.from('"event":{"type":"');

/** The type of a frame's event; pi writes it first. */
function typeIn(frame: Buffer): string {
  const start = frame.indexOf(eventKey) + eventKey.length;
  return frame.toString("latin1", start, frame.indexOf(0x22, start));
}
