import { execFile } from "node:child_process";
import { readFile, readlink } from "node:fs/promises";
import { hostname } from "node:os";
import { promisify } from "node:util";
import { exists, startTimeOf } from "./processes.ts";

/** The process that holds a lease, distinguishable from any other on this machine, later, or on other machines. */
export interface LeaseHolder {
  readonly host: string;
  /** The id of this boot of the machine; empty if the system does not report it. */
  readonly bootId: string;
  /** The namespace of `pid`; empty if the system has only one. */
  readonly pidSpace: string;
  readonly pid: number;
  /** In the kernel's own unit; empty if the system does not report it. */
  readonly startTime: string;
}

/** `elsewhere`: cannot be determined on this machine. */
export type HolderLife = "alive" | "dead" | "elsewhere";

/** The current process. Always returns the same promise. */
export function thisHolder(): Promise<LeaseHolder> {
  known ??= holderOf(process.pid);
  return known;
}

let known: Promise<LeaseHolder> | undefined;

/** A process of this machine. `pid`: in the namespace of this process. */
export async function holderOf(pid: number): Promise<LeaseHolder> {
  // Read once: on macOS the time of the boot changes when the clock is set.
  bootAndSpace ??= Promise.all([bootOf(), pidSpaceOf()]);
  const [[bootId, pidSpace], startTime] = await Promise.all([bootAndSpace, startOf(pid)]);
  return { host: hostname(), bootId, pidSpace, pid, startTime };
}

let bootAndSpace: Promise<[bootId: string, pidSpace: string]> | undefined;

/** Whether the process that took a lease still exists. */
export async function lifeOf(holder: LeaseHolder): Promise<HolderLife> {
  const own = await thisHolder();
  if (holder.bootId !== own.bootId) return holder.host === own.host ? "dead" : "elsewhere";
  // Without a boot id the host name is the only criterion; with one, the host may have been renamed.
  if (own.bootId === "" && holder.host !== own.host) return "elsewhere";
  // A container has its own pids.
  if (holder.pidSpace !== own.pidSpace) return "elsewhere";
  if (!exists(holder.pid)) return "dead";
  return (await startOf(holder.pid)) === holder.startTime ? "alive" : "dead";
}

export function isLeaseHolder(value: unknown): value is LeaseHolder {
  const { host, bootId, pidSpace, pid, startTime } = (value ?? {}) as Partial<Record<keyof LeaseHolder, unknown>>;
  const texts = [host, bootId, pidSpace, startTime];
  return (
    texts.every((text) => typeof text === "string" && text.length <= 256) && Number.isInteger(pid) && Number(pid) > 0
  );
}

async function bootOf(): Promise<string> {
  if (process.platform === "linux") {
    return await readFile("/proc/sys/kernel/random/boot_id", "utf8").then(
      (text) => text.trim(),
      () => "",
    );
  }
  return await outputOf("sysctl", ["-n", "kern.boottime"]);
}

async function pidSpaceOf(): Promise<string> {
  return process.platform === "linux" ? await readlink("/proc/self/ns/pid").catch(() => "") : "";
}

async function startOf(pid: number): Promise<string> {
  if (process.platform === "linux") return (await startTimeOf(pid)) ?? "";
  return await outputOf("ps", ["-o", "lstart=", "-p", String(pid)]);
}

async function outputOf(program: string, args: readonly string[]): Promise<string> {
  return await promisify(execFile)(program, args).then(
    ({ stdout }) => stdout.trim(),
    () => "",
  );
}
