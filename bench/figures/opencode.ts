import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ResourceStack } from "../../server/lib/resource-stack.ts";
import { startBareHttp } from "../lib/bare-http.ts";
import { runNode } from "../lib/commands.ts";
import { commandLine, startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import type { Figure, Measured, Resources, Setting } from "../lib/figure.ts";
import { poolIsFull } from "../lib/pool.ts";
import { memoryOf } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { chosenPi, scriptModel } from "../lib/real-pi.ts";
import { interleave, median, ratios } from "../lib/statistics.ts";

const sessions = 20;
const lists = 200;
const creates = 10;
const restMs = 1_500;

/** What a client of either daemon does. */
interface Service {
  readonly pid: number;
  list(): Promise<unknown>;
  create(): Promise<unknown>;
  /** Resolves when it is ready for the next create. */
  rested(): Promise<void>;
}

export const opencode: Figure = {
  title: "opencode serve, in the same minutes: start, memory, list, create",
  goals: ["Q10 start", "Q10 memory", "Q10 list"],
  repetitions: 3,
  deadlineSeconds: 300,
  measure: async (setting, resources) => {
    const binary = setting.opencode;
    if (binary === undefined) {
      const reason = "it needs --opencode FILE";
      return {
        rows: [],
        notes: [reason],
        unmeasured: { "Q10 start": reason, "Q10 memory": reason, "Q10 list": reason },
      };
    }
    return await measure(binary, setting, resources);
  },
};

async function measure(binary: string, setting: Setting, resources: Resources): Promise<Measured> {
  const pi = chosenPi();
  const { env } = await scriptModel(setting, resources);
  const home = join(setting.directory, "opencode");
  mkdirSync(home);
  let starts = 0;
  const times = await interleave(setting.repetitions, {
    own: () => {
      starts += 1;
      return startAndStop(setting, pi.path, env, join(setting.directory, `own-${starts}`));
    },
    theirs: async () => {
      const stack = new ResourceStack();
      const startedAt = performance.now();
      await startOpencode(binary, home, stack);
      const took = performance.now() - startedAt;
      await stack.release();
      return took;
    },
  });
  const own = await ownService(setting, resources, { pi: pi.path, env: { ...env, PI_RPCD_WARM_CHILDREN: "1" } });
  const theirs = await startOpencode(binary, home, resources);
  await sleep(restMs);
  const memory = { own: memoryOf(own.pid), theirs: memoryOf(theirs.pid) };
  for (let i = 0; i < sessions; i += 1) await Promise.all([own.create(), theirs.create()]);
  const bare = await startBareHttp("node", JSON.stringify(await own.list()), setting, resources);
  const list = await interleave(setting.repetitions, {
    own: () => p50(lists, () => own.list()),
    bare: () => p50(lists, () => ask(`http://127.0.0.1:${bare.port}/`, {})),
    theirs: () => p50(lists, () => theirs.list()),
  });
  const create = await interleave(setting.repetitions, {
    own: () =>
      p50(
        creates,
        () => own.create(),
        () => own.rested(),
      ),
    theirs: () =>
      p50(
        creates,
        () => theirs.create(),
        () => own.rested(),
      ),
  });
  return {
    rows: [
      { name: "start / opencode serve", unit: "x", values: ratios(times.own, times.theirs), goals: ["Q10 start"] },
      {
        name: "fresh memory / opencode serve",
        unit: "x",
        values: [memory.own.residentMiB / memory.theirs.residentMiB],
        goals: ["Q10 memory"],
      },
      { name: "list p50 / opencode serve", unit: "x", values: ratios(list.own, list.theirs), goals: ["Q10 list"] },
      {
        name: "list p50 of a bare node:http with the same answer / opencode serve",
        unit: "x",
        values: ratios(list.bare, list.theirs),
      },
      { name: "create p50, warm / opencode serve", unit: "x", values: ratios(create.own, create.theirs) },
      { name: "start", unit: "ms", values: times.own },
      { name: "start of opencode serve", unit: "ms", values: times.theirs },
      { name: "fresh, RSS", unit: "MiB", values: [memory.own.residentMiB] },
      { name: "opencode serve fresh, RSS", unit: "MiB", values: [memory.theirs.residentMiB] },
      { name: "list p50", unit: "ms", values: list.own },
      { name: "list p50 of opencode serve", unit: "ms", values: list.theirs },
      { name: "create p50, warm", unit: "ms", values: create.own },
      { name: "create p50 of opencode serve", unit: "ms", values: create.theirs },
    ],
    notes: [`${sessions} sessions; all requests over HTTP on loopback; opencode creates only a row, without a process`],
  };
}

async function startAndStop(
  setting: Setting,
  pi: string,
  env: Readonly<Record<string, string>>,
  stateDir: string,
): Promise<number> {
  const own = { ...process.env, ...env, PI_RPCD_STATE_DIR: stateDir, PI_RPCD_WARM_CHILDREN: "0" };
  const { ms } = await runNode([commandLine(setting), "start", "--pi", pi], own);
  await runNode([commandLine(setting), "stop"], own);
  return ms;
}

async function ownService(
  setting: Setting,
  resources: Resources,
  options: Parameters<typeof startDaemonUnderTest>[2],
): Promise<Service> {
  const daemon = await startDaemonUnderTest(setting, resources, options);
  const client = await RawClient.open(daemon, "unix", resources);
  const headers = { authorization: `Bearer ${daemon.token}`, "content-type": "application/json" };
  return {
    pid: daemon.pid,
    list: () => ask(`${daemon.url}/v1/sessions`, { headers }),
    create: () => {
      const body = JSON.stringify({ cwd: setting.directory });
      return ask(`${daemon.url}/v1/sessions`, { method: "POST", headers, body });
    },
    rested: () => poolIsFull(client),
  };
}

async function startOpencode(binary: string, home: string, resources: Resources): Promise<Service> {
  const child = spawn(binary, ["serve", "--port", "0", "--hostname", "127.0.0.1"], {
    cwd: home,
    env: {
      ...process.env,
      HOME: home,
      ...{ XDG_DATA_HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home, XDG_STATE_HOME: home },
      OPENCODE_DISABLE_AUTOUPDATE: "1",
    },
    stdio: ["ignore", "pipe", "ignore"],
  });
  resources.add(child, async () => {
    const gone = once(child, "exit");
    child.kill();
    await gone;
  });
  const listening = new Promise<string>((resolve, reject) => {
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      const url = /http:\/\/[\w.:]+\d/.exec(output)?.[0];
      if (url !== undefined) resolve(url);
    });
    child.once("error", reject).once("exit", () => reject(new Error("opencode ended before it listened.")));
  });
  const url = await within(60, "the start of opencode serve", listening);
  const headers = { "content-type": "application/json" };
  return {
    pid: child.pid ?? -1,
    list: () => ask(`${url}/session`, { headers }),
    create: () => ask(`${url}/session`, { method: "POST", headers, body: "{}" }),
    rested: async () => {},
  };
}

async function ask(url: string, init: RequestInit): Promise<unknown> {
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(30_000) });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${init.method ?? "GET"} ${url}: ${response.status} ${JSON.stringify(answer)}`);
  return answer;
}

/** Milliseconds. Waits before each one until nothing else is under way. */
async function p50(
  count: number,
  act: () => Promise<unknown>,
  rested: () => Promise<void> = async () => {},
): Promise<number> {
  const samples: number[] = [];
  for (let i = 0; i < count; i += 1) {
    await rested();
    const startedAt = performance.now();
    await act();
    samples.push(performance.now() - startedAt);
  }
  return median(samples);
}
