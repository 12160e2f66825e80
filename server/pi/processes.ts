import { execFile } from "node:child_process";
import { closeSync, openSync, readSync } from "node:fs";
import { open, readdir, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { CHILD_MARKER_ENV } from "../../protocol/link.ts";
import { Slices } from "../lib/slices.ts";

/** A process, distinguishable from a later one with the same pid. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in the kernel's own unit; absent if the system does not report it. */
  readonly startTime?: string;
}

/** Whether a process with this pid exists (including other users' processes). */
export function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

/** Sends a signal to a process or, with a negative number, to a group. An ended process is not an error. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/**
 * Processes whose environment has the marker of one of these children: the child, its tools and their descendants,
 * including those in a session of their own. Found by inheritance, never by name.
 */
export async function marked(childIds: readonly string[]): Promise<ProcessIdentity[]> {
  const entries = new Set(childIds.map((id) => `${CHILD_MARKER_ENV}=${id}`));
  return process.platform === "linux" ? await markedOnLinux(entries) : await markedByPs(entries);
}

/**
 * The current descendants of a process. A tool that cleared its environment has no marker: it can be found only while
 * its parents live.
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
 * The remaining processes in the session of an ended leader (outside Linux: in its group). This finds tools that
 * cleared their environment and lost their parents, unless they began a session of their own. The system does not
 * reuse the pid while any of them is left; a process that has it anyway leads its own session.
 */
async function leftInSession(leader: number): Promise<ProcessIdentity[]> {
  const all = process.platform === "linux" ? await parentsOnLinux() : await parentsByPs();
  if (all.some(({ pid }) => pid === leader)) return [];
  return all.filter(({ session }) => session === leader);
}

/** Whether it is still the same process. */
export async function isStill({ pid, startTime }: ProcessIdentity): Promise<boolean> {
  if (!exists(pid)) return false;
  return startTime === undefined || (await startTimeOf(pid)) === startTime;
}

/** How often the search is repeated: a killed process takes a moment to end, and may have started another. */
const maxRounds = 100;
const roundMs = 10;

/** How processes without a marker are found. */
export interface Unmarked {
  /** Former descendants of a child. */
  readonly known?: readonly ProcessIdentity[];
  /** The pid of an ended child that led a session. */
  readonly leader?: number;
}

/**
 * Kills all processes with one of these children's markers, and those found in another way. Resolves, with their
 * number, when none is left.
 */
export async function endMarked(childIds: readonly string[], { known = [], leader }: Unmarked = {}): Promise<number> {
  const ended = new Set<number>();
  for (const identity of known) if (await kill(identity)) ended.add(identity.pid);
  for (let round = 0; round < maxRounds; round += 1) {
    const left = await remaining(childIds, leader).catch((error: NodeJS.ErrnoException) => {
      // No file descriptor is free at the moment.
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

/** Kills a process if it is still the one that was found. */
async function kill({ pid, startTime }: ProcessIdentity): Promise<boolean> {
  if (startTime !== undefined && (await startTimeOf(pid)) !== startTime) return false;
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch {
    // It has ended, or belongs to another user.
    return false;
  }
}

/** When a process was started, in the system's own format. */
export async function startTimeOf(pid: number): Promise<string | undefined> {
  return process.platform === "linux" ? statOf(pid)?.startTime : await startTimeByPs(pid);
}

interface ProcessRow {
  readonly pid: number;
  readonly parent: number;
  /** Its session; outside Linux its group. */
  readonly session: number;
  readonly startTime: string;
}

/** Longer than a process's stat. */
const statText = Buffer.alloc(4 * 1024);

/**
 * Fields 4, 6 and 22 of a process's stat on Linux, counted after the name, which may contain spaces. Read synchronously,
 * because the system does not wait for the process: `readFile` takes five steps of the thread pool and 64 KiB of memory.
 */
function statOf(pid: number): ProcessRow | undefined {
  let file: number | undefined;
  try {
    file = openSync(`/proc/${pid}/stat`, "r");
    const stat = statText.toString("latin1", 0, readSync(file, statText));
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state, parent, session, startTime] = [fields[0], fields[1], fields[3], fields[19]];
    // A zombie has ended.
    if (startTime === undefined || state === "Z") return undefined;
    return { pid, parent: Number(parent), session: Number(session), startTime };
  } catch {
    return undefined;
  } finally {
    if (file !== undefined) closeSync(file);
  }
}

async function parentsOnLinux(): Promise<ProcessRow[]> {
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const found: ProcessRow[] = [];
  const slices = new Slices();
  for (const pid of pids) {
    const stat = statOf(pid);
    if (stat !== undefined) found.push(stat);
    await slices.next();
  }
  return found;
}

async function parentsByPs(): Promise<ProcessRow[]> {
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
  const memory = Buffer.allocUnsafeSlow(64 * 1024);
  for (const name of await readdir("/proc")) {
    const pid = Number(name);
    if (!Number.isInteger(pid) || pid === process.pid) continue;
    try {
      const environment = await environmentOf(pid, memory);
      if (!environment.includes(CHILD_MARKER_ENV)) continue;
      if (!environment.split("\0").some((entry) => entries.has(entry))) continue;
      const startTime = await startTimeOf(pid);
      if (startTime !== undefined) found.push({ pid, startTime });
    } catch {
      // Ended meanwhile, or owned by another user.
    }
  }
  return found;
}

/** `memory`: what `readFile` would allocate for each process. */
async function environmentOf(pid: number, memory: Buffer): Promise<string> {
  const file = await open(`/proc/${pid}/environ`);
  try {
    let text = "";
    for (;;) {
      const { bytesRead } = await file.read(memory, 0, memory.length, null);
      text += memory.toString("latin1", 0, bytesRead);
      if (bytesRead < memory.length) return text;
    }
  } finally {
    await file.close();
  }
}

async function markedByPs(entries: ReadonlySet<string>): Promise<ProcessIdentity[]> {
  const { stdout } = await promisify(execFile)("ps", ["-axEww", "-o", "pid=,command="], { maxBuffer: 64 << 20 });
  return stdout
    .split("\n")
    .filter((line) => line.includes(CHILD_MARKER_ENV) && line.split(" ").some((word) => entries.has(word)))
    .map((line) => ({ pid: Number.parseInt(line, 10) }))
    .filter(({ pid }) => Number.isInteger(pid) && pid !== process.pid);
}

/**
 * Memory that these processes do not share with others, if the system reports it; otherwise their resident memory.
 */
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
