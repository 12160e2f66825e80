import { loadavg } from "node:os";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { setTimeout as sleep } from "node:timers/promises";

/** How busy the machine is with other work. */
export interface Load {
  /** Of the last minute. */
  readonly loadAverage: number;
  /** How late the timers of a Node without other work are. */
  readonly delayP50Ms: number;
  readonly delayP99Ms: number;
}

const observedMs = 1_000;

/** Observes the machine for a second. The calling process must be idle. */
export async function machineLoad(): Promise<Load> {
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  await sleep(observedMs);
  delay.disable();
  const milliseconds = (percentile: number): number => Math.max(0, delay.percentile(percentile) / 1e6 - 1);
  const [loadAverage = Number.NaN] = loadavg();
  return { loadAverage, delayP50Ms: milliseconds(50), delayP99Ms: milliseconds(99) };
}
