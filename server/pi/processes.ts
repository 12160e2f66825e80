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
 * The processes whose environment carries the marker of one of these children: the child itself, its tools and what they
 * started, also those that moved to a session of their own. Found by what they inherited, never by name.
 */
export async function marked(childIds: readonly string[]): Promise<ProcessIdentity[]> {
  const entries = new Set(childIds.map((id) => `${CHILD_MARKER_ENV}=${id}`));
  return process.platform === "linux" ? await markedOnLinux(entries) : await markedByPs(entries);
}

/**
 * What descends from a process at this moment. A tool that has cleared its environment carries no marker: it can only be
 * found while its line of parents still stands.
 */
export async function descendants(root: number): Promise<ProcessIdentity[]> {
  const all = process.platform === "linux" ? await parentsOnLinux() : await parentsByPs();
  const children = Map.groupBy(all, ({ parent }) => parent);
  const found: ProcessIdentity[] = [];
  const left = [root];
  for (let pid = left.pop(); pid !== undefined; pid = left.pop()) {
    for (const { pid: below, startTime } of children.get(pid) ?? []) {
      found.push({ pid: below, startTime });
      left.push(below);
    }
    children.delete(pid);
  }
  return found;
}

/**
 * What is left in the session of a process that led it and has ended (outside Linux: in its group). A tool that has cleared its
 * environment and left its line of parents is still found there, unless it has begun a session of its own. The system gives the
 * number to no other process while anything is left; a process that has it all the same is another, which leads its own.
 */
async function leftInSession(leader: number): Promise<ProcessIdentity[]> {
  const all = process.platform === "linux" ? await parentsOnLinux() : await parentsByPs();
  if (all.some(({ pid }) => pid === leader)) return [];
  return all.filter(({ session }) => session === leader);
}

/** Whether the process is still the one that it was. */
export async function isStill({ pid, startTime }: ProcessIdentity): Promise<boolean> {
  if (!exists(pid)) return false;
  return startTime === undefined || (await startTimeOf(pid)) === startTime;
}

/** How often what is left is looked for again: one that is killed takes a moment to go, and may have started another. */
const maxRounds = 100;
const roundMs = 10;

/** How processes that carry no marker are known. */
export interface Unmarked {
  /** They were seen to descend from a child. */
  readonly known?: readonly ProcessIdentity[];
  /** The number of a child that has ended, and led a session. */
  readonly leader?: number;
}

/**
 * Ends with SIGKILL all processes that carry one of these children's markers, and those that are known in another way.
 * Resolves, with how many there were, when none is left.
 */
export async function endMarked(childIds: readonly string[], { known = [], leader }: Unmarked = {}): Promise<number> {
  const ended = new Set<number>();
  for (const identity of known) if (await kill(identity)) ended.add(identity.pid);
  for (let round = 0; round < maxRounds; round += 1) {
    const left = await remaining(childIds, leader).catch((error: NodeJS.ErrnoException) => {
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

async function remaining(childIds: readonly string[], leader: number | undefined): Promise<ProcessIdentity[]> {
  return [...(await marked(childIds)), ...(leader === undefined ? [] : await leftInSession(leader))];
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

/** When a process was started, in whatever form the system tells it. */
export async function startTimeOf(pid: number): Promise<string | undefined> {
  return process.platform === "linux" ? (await statOf(pid))?.startTime : await startTimeByPs(pid);
}

interface Descent {
  readonly pid: number;
  readonly parent: number;
  /** Its session; outside Linux its group. */
  readonly session: number;
  readonly startTime: string;
}

/** Fields 4, 6 and 22 of a process's stat on Linux, counted from behind the name, which may hold blanks. */
async function statOf(pid: number): Promise<Descent | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "latin1");
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, parent, session, startTime] = [fields[0], fields[1], fields[3], fields[19]];
    // A zombie has ended.
    if (startTime === undefined || state === "Z") return undefined;
    return { pid, parent: Number(parent), session: Number(session), startTime };
  } catch {
    return undefined;
  }
}

async function parentsOnLinux(): Promise<Descent[]> {
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  return (await Promise.all(pids.map(statOf))).filter((stat) => stat !== undefined);
}

async function parentsByPs(): Promise<Descent[]> {
  const { stdout } = await promisify(execFile)("ps", ["-axo", "pid=,ppid=,pgid=,lstart="], { maxBuffer: 16 << 20 });
  return stdout.split("\n").flatMap((line) => {
    const [, pid, parent, session, startTime] = /^\s*(\d+)\s+(\d+)\s+(\d+)\s+(.*\S)\s*$/.exec(line) ?? [];
    if (startTime === undefined) return [];
    return [{ pid: Number(pid), parent: Number(parent), session: Number(session), startTime }];
  });
}

async function startTimeByPs(pid: number): Promise<string | undefined> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "lstart=", "-p", String(pid)]).catch(() => ({
    stdout: "",
  }));
  return stdout.trim() === "" ? undefined : stdout.trim();
}

async function markedOnLinux(entries: ReadonlySet<string>): Promise<ProcessIdentity[]> {
  const found: ProcessIdentity[] = [];
  for (const name of await readdir("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const environment = await readFile(`/proc/${pid}/environ`, "latin1");
      if (!environment.includes(CHILD_MARKER_ENV)) continue;
      if (!environment.split("\0").some((entry) => entries.has(entry))) continue;
      const startTime = await startTimeOf(pid);
      if (startTime !== undefined) found.push({ pid, startTime });
    } catch {
      // Ended meanwhile, or another user's.
    }
  }
  return found;
}

async function markedByPs(entries: ReadonlySet<string>): Promise<ProcessIdentity[]> {
  const { stdout } = await promisify(execFile)("ps", ["-axEww", "-o", "pid=,command="], { maxBuffer: 64 << 20 });
  return stdout
    .split("\n")
    .filter((line) => line.includes(CHILD_MARKER_ENV) && line.split(" ").some((word) => entries.has(word)))
    .map((line) => ({ pid: Number.parseInt(line, 10) }))
    .filter(({ pid }) => Number.isInteger(pid) && pid !== process.pid);
}

/** Memory that these processes do not share with others, as far as the system tells; resident memory where it does not. */
export async function privateBytes(pids: readonly number[]): Promise<number> {
  if (pids.length === 0) return 0;
  if (process.platform !== "linux") return await residentByPs(pids);
  const sizes = await Promise.all(
    pids.map(async (pid) => {
      const status = await readFile(`/proc/${pid}/status`, "latin1").catch(() => "");
      const size = /^RssAnon:\s+(\d+) kB/m.exec(status) ?? /^VmRSS:\s+(\d+) kB/m.exec(status);
      return Number(size?.[1] ?? 0) * 1024;
    }),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function residentByPs(pids: readonly number[]): Promise<number> {
  const { stdout } = await promisify(execFile)("ps", ["-o", "rss=", "-p", pids.join(",")]).catch(() => ({
    stdout: "",
  }));
  return stdout.split("\n").reduce((sum, line) => sum + Number(line) * 1024, 0);
}
