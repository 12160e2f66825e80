import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { answer } from "../../provider/reply.ts";
import { AcpChild } from "../lib/acp-child.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import type { Figure, Setting } from "../lib/figure.ts";
import { poolIsFull } from "../lib/pool.ts";
import { cpuMicroseconds } from "../lib/process-usage.ts";
import { RawClient } from "../lib/raw-client.ts";
import { chosenPi, scriptModel } from "../lib/real-pi.ts";
import { interleave, ratios } from "../lib/statistics.ts";

const piAcp = join(import.meta.dirname, "..", "..", "node_modules", "pi-acp", "dist", "index.js");
const deltas = 6_000;

export const acp: Figure = {
  title: "ACP: session/new and the first piece of an answer, beside pi-acp; the processor for many deltas",
  goals: ["A1", "A2", "A3"],
  repetitions: 7,
  deadlineSeconds: 300,
  measure: async (setting, resources) => {
    const pi = chosenPi();
    const { env, provider } = await scriptModel(setting, resources);
    const daemon = await startDaemonUnderTest(setting, resources, {
      pi: pi.path,
      env: { ...env, PI_RPCD_WARM_CHILDREN: "1" },
    });
    const client = await RawClient.open(daemon, "unix", resources);
    const ours = new AcpChild(
      {
        args: [
          join(setting.dist, "cli", "main.js"),
          "acp",
          "--state-dir",
          daemon.stateDir,
          "--model",
          "scripted/model-1",
        ],
        cwd: setting.directory,
        env,
      },
      resources,
    );
    const theirs = new AcpChild(
      { args: [piAcp], cwd: setting.directory, env: { ...env, PI_ACP_PI_COMMAND: piWith(pi.path, setting) } },
      resources,
    );
    for (const agent of [ours, theirs])
      await agent.request("initialize", { protocolVersion: 1, clientCapabilities: {} });
    // The second request of a kind starts its pool.
    for (let i = 0; i < 2; i += 1) await ours.create(setting.directory);
    const created = await interleave(setting.repetitions, {
      ours: async () => {
        await poolIsFull(client);
        return await timed(() => ours.create(setting.directory));
      },
      theirs: async () => await timed(() => theirs.create(setting.directory)),
    });
    const ownSession = await ours.create(setting.directory);
    const theirSession = await theirs.create(setting.directory);
    await client.request("session/subscribe", { sessionId: ownSession });
    const lags: number[] = [];
    const first = await interleave(setting.repetitions, {
      ours: async () => {
        let wireAt = 0;
        client.onEvent = (frame) => {
          if (wireAt === 0 && frame.includes('"text_delta"')) wireAt = performance.now();
        };
        const { ms, at } = await firstChunk(ours, ownSession);
        lags.push(at - wireAt);
        return ms;
      },
      theirs: async () => (await firstChunk(theirs, theirSession)).ms,
    });
    client.onEvent = () => {};
    const cpu: number[] = [];
    for (let i = 0; i < setting.repetitions; i += 1) {
      provider.add(answer(...Array.from({ length: deltas }, (_, index) => `word ${index} `)));
      const before = cpuMicroseconds(ours.pid);
      await ours.prompt(ownSession, "Write.");
      cpu.push((cpuMicroseconds(ours.pid) - before) / 1_000);
    }
    return {
      rows: [
        { name: "session/new: a warm child", unit: "ms", values: created.ours, goals: ["A1"] },
        { name: "session/new: pi-acp", unit: "ms", values: created.theirs },
        { name: "session/new: ours / pi-acp", unit: "x", values: ratios(created.ours, created.theirs) },
        { name: "first piece of an answer: ours", unit: "ms", values: first.ours },
        { name: "first piece of an answer: pi-acp", unit: "ms", values: first.theirs },
        { name: "first piece of an answer: after our own wire", unit: "ms", values: lags, goals: ["A2"] },
        { name: `processor for ${deltas} deltas`, unit: "ms", values: cpu, goals: ["A3"] },
      ],
      notes: [`pi ${pi.version}; pi-acp ends the session before, as it does for its users`],
    };
  },
};

/** The time from a prompt to the first piece of its answer. Resolves when the prompt is answered. */
async function firstChunk(agent: AcpChild, sessionId: string): Promise<{ readonly ms: number; readonly at: number }> {
  let at = 0;
  agent.onChunk = () => {
    if (at === 0) at = performance.now();
  };
  const startedAt = performance.now();
  await agent.prompt(sessionId, "Say a few words, please.");
  return { ms: at - startedAt, at };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await work();
  return performance.now() - startedAt;
}

/** pi-acp takes a command without arguments. */
function piWith(path: string, { directory }: Setting): string {
  const file = join(directory, "pi");
  writeFileSync(file, `#!/bin/sh\nexec '${process.execPath}' '${path}' --model scripted/model-1 "$@"\n`);
  chmodSync(file, 0o755);
  return file;
}
