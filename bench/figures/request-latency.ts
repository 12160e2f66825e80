import { startDaemonUnderTest } from "../lib/daemon-under-test.ts";
import { echoPi, startEchoDirectly } from "../lib/echo-sources.ts";
import type { Figure, Measured, Resources, Row, Setting } from "../lib/figure.ts";
import { RawClient, type Transport } from "../lib/raw-client.ts";
import { interleave, median, quantile, ratios } from "../lib/statistics.ts";

const roundsPerRepetition = 3_000;
const text = "x".repeat(240);

export const requestLatency: Figure = {
  title: "Added latency of a request, on all cores",
  repetitions: 5,
  measure,
};

/** The same requests, one after the other, to the same program: over its stdio, and through the daemon. */
async function measure(setting: Setting, resources: Resources): Promise<Measured> {
  const child = startEchoDirectly(resources);
  const daemon = await startDaemonUnderTest(setting, resources, { pi: echoPi });
  const unix = await RawClient.open(daemon, "unix", resources);
  const tcp = await RawClient.open(daemon, "tcp", resources);
  const { sessionId } = await unix.request("session/create", { cwd: setting.directory });
  const command = { type: "get_echo", text };
  const p99: Record<"direct" | Transport, number[]> = { direct: [], unix: [], tcp: [] };
  const p50 = await interleave(setting.repetitions, {
    direct: () => timed(() => child.request(command), p99.direct),
    unix: () => timed(() => unix.request("session/command", { sessionId, command }), p99.unix),
    tcp: () => timed(() => tcp.request("session/command", { sessionId, command }), p99.tcp),
  });
  for (const values of Object.values(p99)) values.shift();
  const rows = (["unix", "tcp"] as const).flatMap((transport): Row[] => [
    {
      name: `p50 through the daemon (${transport}) / direct`,
      unit: "x",
      values: ratios(p50[transport], p50.direct),
      goal: { id: "P2", sense: "at most", target: 2.5, stretch: 2 },
    },
    {
      name: `added p99 (${transport})`,
      unit: "ms",
      values: p99[transport].map((value, i) => (value - (p99.direct[i] ?? Number.NaN)) / 1_000),
      goal: { id: "P2", sense: "at most", target: 1.5, stretch: 0.6 },
    },
  ]);
  return {
    rows: [
      ...rows,
      { name: "p50 direct", unit: "us", values: p50.direct },
      { name: "p50 through the daemon (unix)", unit: "us", values: p50.unix },
      { name: "p50 through the daemon (tcp)", unit: "us", values: p50.tcp },
    ],
    notes: [`${roundsPerRepetition} requests of ${JSON.stringify(command).length} bytes for each value, one at a time`],
  };
}

/** Microseconds of the median round; the 99th percentile is appended to `p99`. */
async function timed(round: () => Promise<unknown>, p99: number[]): Promise<number> {
  const samples = new Float64Array(roundsPerRepetition);
  for (let i = 0; i < samples.length; i += 1) {
    const startedAt = performance.now();
    await round();
    samples[i] = (performance.now() - startedAt) * 1_000;
  }
  p99.push(quantile(samples, 0.99));
  return median(samples);
}
