import { spawn } from "node:child_process";
import { fstatSync } from "node:fs";

/**
 * Ends this process when the reader of stdout has gone (`pi-rpcd tail last | head -20`), for commands that print
 * nothing for a long time: a write reports it only afterwards. Node cannot poll a pipe for its reader. GNU `tail` can,
 * and ends with SIGPIPE; without it, the next write ends this process.
 */
export function endWithReader(): void {
  if (!fstatSync(process.stdout.fd).isFIFO()) return;
  const watcher = spawn("tail", [`--pid=${process.pid}`, "--sleep-interval=0.5", "-f", "/dev/null"], {
    stdio: ["ignore", "inherit", "ignore"],
  });
  watcher.on("error", () => {});
  watcher.on("exit", (_code, signal) => {
    if (signal === "SIGPIPE") process.exit();
  });
  watcher.unref();
  process.on("exit", () => watcher.kill());
}
