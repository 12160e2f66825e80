import { execFile } from "node:child_process";
import { readFile, readlink } from "node:fs/promises";
import { hostname } from "node:os";
import { promisify } from "node:util";
import { exists, startTimeOf } from "./processes.ts";

/** The process that holds a lease, so that it can be told from any other: on this machine, later, and elsewhere. */
export interface LeaseHolder {
  readonly host: string;
  /** Of this start of the machine; empty where the system does not tell it. */
  readonly bootId: string;
  /** The space in which `pid` counts; empty where the system has but one. */
  readonly pidSpace: string;
  readonly pid: number;
  /** In the kernel's own unit; empty where the system does not tell it. */
  readonly startTime: string;
}

/** `elsewhere`: it cannot be known from here. */
export type HolderLife = "alive" | "dead" | "elsewhere";

/** This very process. Always the same promise. */
export function thisHolder(): Promise<LeaseHolder> {
  known ??= holderOf(process.pid);
  return known;
}

let known: Promise<LeaseHolder> | undefined;

/** A process of this machine. */
async function holderOf(pid: number): Promise<LeaseHolder> {
  const [bootId, pidSpace, startTime] = await Promise.all([bootOf(), pidSpaceOf(), startOf(pid)]);
  return { host: hostname(), bootId, pidSpace, pid, startTime };
}

/** Whether the process that took a lease is still there. */
export async function lifeOf(holder: LeaseHolder): Promise<HolderLife> {
  const own = await thisHolder();
  if (holder.bootId !== own.bootId) return holder.host === own.host ? "dead" : "elsewhere";
  // Without an id of the boot the name of the host is all there is; with one, a host may well have changed its name.
  if (own.bootId === "" && holder.host !== own.host) return "elsewhere";
  // A container has numbers of its own.
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
  return await said("sysctl", ["-n", "kern.boottime"]);
}

async function pidSpaceOf(): Promise<string> {
  return process.platform === "linux" ? await readlink("/proc/self/ns/pid").catch(() => "") : "";
}

async function startOf(pid: number): Promise<string> {
  if (process.platform === "linux") return (await startTimeOf(pid)) ?? "";
  return await said("ps", ["-o", "lstart=", "-p", String(pid)]);
}

async function said(program: string, args: readonly string[]): Promise<string> {
  return await promisify(execFile)(program, args).then(
    ({ stdout }) => stdout.trim(),
    () => "",
  );
}
