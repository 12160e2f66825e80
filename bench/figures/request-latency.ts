import { execFileSync } from "node:child_process";
import { startBareServer } from "../lib/bare-server.ts";
import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { within } from "../lib/deadline.ts";
import { echoPi, startEchoDirectly } from "../lib/echo-sources.ts";
import type { Figure, Measured, Resources, Setting } from "../lib/figure.ts";
import { RawClient } from "../lib/raw-client.ts";
import { interleave, median, quantile, ratios } from "../lib/statistics.ts";

const roundsPerRepetition = 3_000;
const text = "x".repeat(240);

export const requestLatency: Figure = {
  title: "Latency of a request through the daemon, json-rpc-2.0 alone, a bare relay, and directly; on all cores",
  goals: ["Q1"],
  repetitions: 7,
  measure: (setting, resources) => measure(setting, resources, {}),
};

export const requestLatencyOnOneCore: Figure = {
  title: "The same on one core",
  goals: ["P1"],
  repetitions: 5,
  measure: async (setting, resources) => {
    // The processes that this one starts inherit it.
    execFileSync("taskset", ["-acp", "0", String(process.pid)]);
    return await measure(setting, resources, { onOneCore: true });
  },
};

/** The same requests, one after the other, to the same program: over its stdio, through a relay, json-rpc-2.0, the daemon. */
async function measure(
  setting: Setting,
  resources: Resources,
  { onOneCore = false }: { readonly onOneCore?: boolean },
): Promise<Measured> {
  const child = startEchoDirectly(resources);
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
  const unix = await RawClient.open(daemon, "unix", resources);
  const tcp = await RawClient.open(daemon, "tcp", resources);
  const { client: relayed } = await startBareServer("bare-relay", setting, resources, [echoPi]);
  const { client: library } = await startBareServer("bare-call", setting, resources, [echoPi]);
  const { sessionId } = await unix.request("session/create", { cwd: setting.directory });
  const command = { type: "get_echo", text };
  const p99: Record<"direct" | "relay" | "library" | "unix" | "tcp", number[]> = {
    direct: [],
    relay: [],
    library: [],
    unix: [],
    tcp: [],
  };
  const p50 = await interleave(setting.repetitions, {
    direct: () => timed(() => child.request(command), p99.direct),
    relay: () => timed(() => relayed.passOn(command), p99.relay),
    library: () => timed(() => library.request("session/command", { sessionId, command }), p99.library),
    unix: () => timed(() => unix.request("session/command", { sessionId, command }), p99.unix),
    tcp: () => timed(() => tcp.request("session/command", { sessionId, command }), p99.tcp),
  });
  for (const values of Object.values(p99)) values.shift();
  return {
    rows: [
      {
        name: "p50 through the daemon / a bare relay (unix)",
        unit: "x",
        values: ratios(p50.unix, p50.relay),
        ...(!onOneCore && { goals: ["Q1"] }),
      },
      {
        name: "p50 through the daemon / direct (unix)",
        unit: "x",
        values: ratios(p50.unix, p50.direct),
        ...(onOneCore && { goals: ["P1"] }),
      },
      {
        name: "p50 through json-rpc-2.0 alone / a bare relay (unix)",
        unit: "x",
        values: ratios(p50.library, p50.relay),
      },
      { name: "p50 through the daemon / direct (tcp)", unit: "x", values: ratios(p50.tcp, p50.direct) },
      { name: "p50 direct", unit: "us", values: p50.direct },
      { name: "p50 through the relay (unix)", unit: "us", values: p50.relay },
      { name: "p50 through the daemon (unix)", unit: "us", values: p50.unix },
      { name: "p50 through the daemon (tcp)", unit: "us", values: p50.tcp },
      { name: "p99 direct", unit: "us", values: p99.direct },
      { name: "p99 through the relay (unix)", unit: "us", values: p99.relay },
      { name: "p99 through the daemon (unix)", unit: "us", values: p99.unix },
    ],
    notes: [`${roundsPerRepetition} requests of ${JSON.stringify(command).length} bytes for each value, one at a time`],
  };
}

/** Microseconds of the median round; the 99th percentile is appended to `p99`. */
async function timed(round: () => Promise<unknown>, p99: number[]): Promise<number> {
  const samples = new Float64Array(roundsPerRepetition);
  const rounds = async (): Promise<void> => {
    for (let i = 0; i < samples.length; i += 1) {
      const startedAt = performance.now();
      await round();
      samples[i] = (performance.now() - startedAt) * 1_000;
    }
  };
  await within(60, `${roundsPerRepetition} answers`, rounds());
  p99.push(quantile(samples, 0.99));
  return median(samples);
}
