// Runs the daemon of a build in a separate process, independently of the build's command line. Ends with its stdin.
// Each line is answered with the event loop's delay and utilization since the previous line.
import { join } from "node:path";
import { monitorEventLoopDelay, performance } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [dist, stateDir, pi] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(join(dist, "server", file)).href);
const { startDaemon } = await load("daemon.js");
const { createLog } = await load("log.js");
const daemon = await startDaemon({ stateDir, pi, env: process.env, log: createLog({ level: "warn" }) });
process.stdout.write(`${JSON.stringify(daemon.file)}\n`);
const delay = monitorEventLoopDelay({ resolution: 1 });
let mark = performance.eventLoopUtilization();
const lines = createInterface({ input: process.stdin });
lines.on("line", () => {
  const { utilization } = performance.eventLoopUtilization(mark);
  // The first line starts the measurement, so that other figures do not pay for it.
  const delayP99Ms = Math.max(0, delay.percentile(99) / 1e6 - 1);
  process.stdout.write(`${JSON.stringify({ delayP99Ms, utilization })}\n`);
  delay.enable();
  delay.reset();
  mark = performance.eventLoopUtilization();
});
lines.on("close", () => void daemon.stop());
process.on("SIGTERM", () => void daemon.stop());
await daemon.closed;
