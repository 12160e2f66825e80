import { execFile } from "node:child_process";
import { readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { CHILD_MARKER_ENV } from "../../protocol/link.ts";

/** A process, so that its number cannot be mistaken for that of a later one. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in the kernel's own unit; absent where the system does not tell it. */
  readonly startTime?: string;
}

/** Whether a process with this number exists (also one of another user). */
export function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Sends a signal to a process or, with a negative number, to a group. One that is gone already is no error. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/**
 * The processes whose environment carries a child's marker: the child's tools and what they started, also those that
 * moved to a session of their own. Found by what they inherited, never by name.
 */
export async function marked(childId: string): Promise<ProcessIdentity[]> {
  const entry = `${CHILD_MARKER_ENV}=${childId}`;
  return process.platform === "linux" ? await markedOnLinux(entry) : await markedByPs(entry);
}

/** How often what is left is looked for again: one that is killed takes a moment to go, and may have started another. */
const maxRounds = 100;
const roundMs = 10;

/** Ends with SIGKILL all processes that carry a child's marker. Resolves, with how many there were, when none is left. */
export async function endMarked(childId: string): Promise<number> {
  const ended = new Set<number>();
  for (let round = 0; round < maxRounds; round += 1) {
    const left = await marked(childId).catch((error: NodeJS.ErrnoException) => {
      // No descriptor is free for a moment.
      if (error.code === "EMFILE" || error.code === "ENFILE") return undefined;
      throw error;
    });
    if (left === undefined) {
      await delay(roundMs);
      continue;
    }
    if (left.length === 0) break;
    for (const identity of left) if (await kill(identity)) ended.add(identity.pid);
    await delay(roundMs);
  }
  return ended.size;
}

/** Ends a process that still is the one that it was when it was found. */
async function kill({ pid, startTime }: ProcessIdentity): Promise<boolean> {
  if (startTime !== undefined && (await startTimeOf(pid)) !== startTime) return false;
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch {
    // Gone by itself, or not ours to end.
    return false;
  }
}

/** Start time of a process on Linux: field 22 of its stat, counted from behind the name, which may hold blanks. */
export async function startTimeOf(pid: number): Promise<string | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1");
    return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  } catch {
    return undefined;
  }
}

async function markedOnLinux(entry: string): Promise<ProcessIdentity[]> {
  const found: ProcessIdentity[] = [];
  for (const name of await readdir("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const environment = await readFile(`/proc/${pid}/environ`, "latin1");
      if (!environment.split("\0").includes(entry)) continue;
      const startTime = await startTimeOf(pid);
      if (startTime !== undefined) found.push({ pid, startTime });
    } catch {
      // Ended meanwhile, or another user's.
    }
  }
  return found;
}

async function markedByPs(entry: string): Promise<ProcessIdentity[]> {
  const { stdout } = await promisify(execFile)("ps", ["-axEww", "-o", "pid=,command="], { maxBuffer: 64 << 20 });
  return stdout
    .split("\n")
    .filter((line) => line.includes(` ${entry}`))
    .map((line) => ({ pid: Number.parseInt(line, 10) }))
    .filter(({ pid }) => Number.isInteger(pid) && pid !== process.pid);
}
