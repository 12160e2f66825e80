import { readdirSync, readFileSync } from "node:fs";

export interface RunningProcess {
  readonly pid: number;
  readonly parent: number;
  readonly command: string;
}

/**
 * The living processes that were started with `marker` (NAME=value) in their environment. Linux only; otherwise empty.
 */
export function processesWith(marker: string): readonly RunningProcess[] {
  if (process.platform !== "linux") return [];
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => {
    try {
      // A zombie has an empty environment, so it counts as gone.
      const environment = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
      return environment.includes(marker) ? [describeProcess(pid)] : [];
    } catch {
      return [];
    }
  });
}

function describeProcess(pid: string): RunningProcess {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  // The name, in parentheses, may contain anything; state and parent follow it.
  const [, parent = "0"] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const command = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
  return { pid: Number(pid), parent: Number(parent), command };
}
