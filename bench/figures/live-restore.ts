import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Corpus, deltas, mixed, writeCorpus } from "../lib/corpus.ts";
import { type DaemonUnderTest, startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { drain } from "../lib/drain.ts";
import { echoPi, rawSource } from "../lib/echo-sources.ts";
import type { Figure, Resources, Row, Setting } from "../lib/figure.ts";
import { createSessions } from "../lib/many-sessions.ts";
import { cpuMicroseconds, memoryOf } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { chosenPi, scriptModel } from "../lib/real-pi.ts";
import { interleave, median, ratios } from "../lib/statistics.ts";

/** A daemon with live restore or without it. */
interface Side {
  readonly daemon: DaemonUnderTest;
  readonly client: RawClient;
  readonly cwd: string;
}

type Measure = (side: Side) => Promise<number>;

const requests = 2_000;
/** As many Node processes as a small machine can run. */
const streams = 10;
const everyMs = 5;
const events = 600;
const furtherSessions = 10;
/** Long enough to collect the garbage of the start. */
const restMs = 1_500;

export const liveRestore: Figure = {
  title: "The same daemon with live restore and without it, in turns",
  goals: ["R1"],
  repetitions: 5,
  deadlineSeconds: 400,
  measure: async (setting, resources) => {
    const pi = chosenPi();
    const { env } = await scriptModel(setting, resources);
    const small = writeCorpus(join(setting.directory, "small.jsonl"), deltas(30_000));
    const agents = writeCorpus(join(setting.directory, "mixed.jsonl"), mixed(50));
    const one = writeCorpus(join(setting.directory, "one.jsonl"), deltas(1));
    const measurement = new Measurement(setting, resources);
    const echo = await measurement.sides(echoPi);
    const real = await measurement.sides(pi.path, env);
    await measurement.add("a request on all cores, p50", "us", echo, request);
    await measurement.add("a small record", "us", echo, record(small));
    await measurement.add("a mixed record", "us", echo, record(agents));
    await measurement.add(`an event of ${streams} sessions, CPU of the daemon`, "us", echo, event(one));
    await measurement.add("a cold create", "ms", real, create);
    await measurement.add("an idle pi, PSS", "MiB", real, idlePi, false);
    await measurement.addFurtherSessions();
    // The processes that this one starts from now on inherit it.
    execFileSync("taskset", ["-acp", "0", String(process.pid)]);
    await measurement.add("a request on one core, p50", "us", await measurement.sides(echoPi), request);
    return { rows: measurement.rows, notes: [`pi ${pi.version}; ${requests} requests for each value`] };
  },
};

class Measurement {
  readonly rows: Row[] = [];
  readonly #setting: Setting;
  readonly #resources: Resources;

  constructor(setting: Setting, resources: Resources) {
    this.#setting = setting;
    this.#resources = resources;
  }

  async side(pi: string, liveRestore: boolean, env: Readonly<Record<string, string>> = {}): Promise<Side> {
    const options = { pi, env: { ...env, PI_RPCD_LIVE_RESTORE: String(liveRestore) } };
    const daemon = await startDaemonUnderTest(this.#setting, this.#resources, options);
    const client = await RawClient.open(daemon, "unix", this.#resources);
    return { daemon, client, cwd: this.#setting.directory };
  }

  async sides(pi: string, env?: Readonly<Record<string, string>>): Promise<readonly [Side, Side]> {
    return [await this.side(pi, true, env), await this.side(pi, false, env)];
  }

  /** `isGoal`: whether the ratio has a limit. */
  async add(
    name: string,
    unit: Row["unit"],
    [kept, plain]: readonly [Side, Side],
    measure: Measure,
    isGoal = true,
  ): Promise<void> {
    const measured = { kept: () => measure(kept), plain: () => measure(plain) };
    this.#add(name, unit, await interleave(this.#setting.repetitions, measured), isGoal);
  }

  /** In new daemons: a used one has memory for further sessions. */
  async addFurtherSessions(): Promise<void> {
    const grown = (liveRestore: boolean) => async (): Promise<number> => {
      const { daemon, client, cwd } = await this.side(echoPi, liveRestore);
      await createSessions(client, 1, cwd);
      await sleep(restMs);
      const before = memoryOf(daemon.pid).residentMiB;
      await createSessions(client, furtherSessions, cwd);
      await sleep(restMs);
      const after = memoryOf(daemon.pid).residentMiB;
      await daemon.stop();
      return ((after - before) * 1_024) / furtherSessions;
    };
    const measured = { kept: grown(true), plain: grown(false) };
    this.#add("a further idle session", "KiB", await interleave(this.#setting.repetitions, measured), true);
  }

  #add(name: string, unit: Row["unit"], values: Record<"kept" | "plain", readonly number[]>, isGoal: boolean): void {
    this.rows.push(
      {
        name: `${name}: with / without`,
        unit: "x",
        values: ratios(values.kept, values.plain),
        ...(isGoal && { goals: ["R1"] as const }),
      },
      { name: `${name}: with`, unit, values: values.kept },
      { name: `${name}: without`, unit, values: values.plain },
    );
  }
}

/** Calls `use` with new sessions, and closes them. */
async function inSessions<T>(
  { client, cwd }: Side,
  count: number,
  use: (sessions: readonly string[]) => Promise<T>,
): Promise<T> {
  const sessions = await createSessions(client, count, cwd);
  const result = await use(sessions);
  for (const sessionId of sessions) await client.request("session/close", { sessionId });
  return result;
}

const request: Measure = (side) =>
  inSessions(side, 1, async ([sessionId = ""]) => {
    const samples: number[] = [];
    const command = { type: "get_echo", text: "x".repeat(240) };
    for (let i = 0; i < requests; i += 1) {
      const startedAt = performance.now();
      await side.client.request("session/command", { sessionId, command });
      samples.push((performance.now() - startedAt) * 1_000);
    }
    return median(samples);
  });

const record =
  (corpus: Corpus): Measure =>
  (side) =>
    inSessions(side, 1, async ([sessionId = ""]) => {
      await side.client.request("session/subscribe", { sessionId });
      const { seconds } = await drain(rawSource(side.client, sessionId), corpus);
      return (seconds * 1e6) / corpus.records;
    });

const event =
  ({ file, bytes }: Corpus): Measure =>
  (side) =>
    inSessions(side, streams, async (sessions) => {
      const { client, daemon } = side;
      client.onEvent = () => {};
      for (const sessionId of sessions) await client.request("session/subscribe", { sessionId });
      const command = { type: "pace", file, start: 0, end: bytes, everyMs, times: events };
      const before = cpuMicroseconds(daemon.pid);
      const streamed = sessions.map((sessionId) => client.request("session/command", { sessionId, command }));
      await within(60, `${events} events of each session`, Promise.all(streamed));
      return (cpuMicroseconds(daemon.pid) - before) / (streams * events);
    });

const create: Measure = async ({ client, cwd }) => {
  const startedAt = performance.now();
  const { sessionId } = await client.request("session/create", { cwd });
  const took = performance.now() - startedAt;
  await client.request("session/close", { sessionId });
  return took;
};

const idlePi: Measure = (side) =>
  inSessions(side, 1, async ([sessionId = ""]) => {
    const { pid = -1 } = await side.client.request("session/get", { sessionId });
    await sleep(restMs);
    return memoryOf(pid).proportionalMiB;
  });
