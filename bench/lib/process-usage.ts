import { readdirSync, readFileSync } from "node:fs";

/** The processor time of a process so far. NaN if the system has no /proc. */
export function cpuMicroseconds(pid: number): number {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    const nanoseconds = tasks.map((task) =>
      Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]),
    );
    return nanoseconds.reduce((sum, used) => sum + used, 0) / 1_000;
  } catch {
    return Number.NaN;
  }
}

export interface Memory {
  /** In physical memory: heap, stacks, and the mapped parts of Node's executable. */
  readonly residentMiB: number;
  /** The same, with each shared page divided by the number of processes that share it. */
  readonly proportionalMiB: number;
}

/** NaN if the system has no /proc. */
export function memoryOf(pid: number): Memory {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    const mebibytes = (field: string): number =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(rollup)?.[1]) / 1_024;
    return { residentMiB: mebibytes("Rss"), proportionalMiB: mebibytes("Pss") };
  } catch {
    return { residentMiB: Number.NaN, proportionalMiB: Number.NaN };
  }
}

/** The processor time of this process's children that have ended, in steps of 10 ms. NaN if the system has no /proc. */
export function reapedCpuMilliseconds(): number {
  try {
    const stat = readFileSync("/proc/self/stat", "utf8");
    // After the name in parentheses, `cutime` and `cstime` are fields 16 and 17 of proc(5).
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[13]) + Number(fields[14])) * 10;
  } catch {
    return Number.NaN;
  }
}
