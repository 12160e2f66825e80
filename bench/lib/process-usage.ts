import { readdirSync, readFileSync } from "node:fs";

/** The processor time of a process so far. Undefined if the system has no /proc. */
export function cpuMicroseconds(pid: number): number | undefined {
  try {
    const tasks = readdirSync(`/proc/${pid}/task`);
    const nanoseconds = tasks.map((task) =>
      Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]),
    );
    return nanoseconds.reduce((sum, used) => sum + used, 0) / 1_000;
  } catch {
    return undefined;
  }
}

export interface Memory {
  /** In physical memory: heap, stacks, and the mapped parts of Node's executable. */
  readonly residentMiB: number;
  /** The part without a backing file, which belongs to this process alone. */
  readonly anonymousMiB: number;
}

export function memoryOf(pid: number): Memory | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const mebibytes = (field: string): number =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(status)?.[1]) / 1_024;
    return { residentMiB: mebibytes("VmRSS"), anonymousMiB: mebibytes("RssAnon") };
  } catch {
    return undefined;
  }
}
