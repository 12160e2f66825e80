import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as wait } from "node:timers/promises";
import { type Client, connect, type SessionHandle } from "../client/index.ts";
import { WireError } from "../protocol/errors.ts";
import { program } from "../test/helpers/programs.ts";
import { root, run } from "./lib/command.ts";
import { isPossible, systemFaults } from "./lib/system-faults.ts";

// Faults of the file system below a daemon's store, injected by strace and a small tmpfs: refused pushes are absent
// afterwards, accepted ones are present, reads and aborts continue, and the store recovers. Then faults of the
// system. The daemon is that of the sources, or during `npm run test:deep` that of the build. The last line is
// `N passed, N failed`; the exit code is 3 if a fault cannot be injected on this machine.

interface Fault {
  readonly name: string;
  /**
   * The program that runs the daemon, with its arguments. `calls` is the number of calls that a daemon's start makes
   * of the kind in `counts`.
   */
  readonly under: (stateDir: string, calls: number) => readonly string[];
  /** Default: the fault does not depend on the number of writes during a start. */
  readonly counts?: { readonly file: string; readonly call: string };
  /** Whether strace injects it and records that. Otherwise pushes must be refused. */
  readonly isInjected: boolean;
  /**
   * Starts and ends the fault from outside while pushes continue: called before each push, and after the last.
   * `stateDir` is the path outside the mount namespace.
   */
  readonly during?: (stateDir: string, pushed: number, refused: number) => void;
  /** Default: 80. */
  readonly pushes?: number;
  /** Whether the program starts another daemon when the first has ended. */
  readonly restarts?: boolean;
}

const defaultPushes = 80;
/** Limit of pushes until an unreported fault occurs. */
const maxPushes = 1_000;
const recoverWithinMs = 30_000;

/** `when` counts from the first call after the daemon's start. */
function injected(file: string, call: string, error: string, when: string): Fault {
  return {
    name: `${error} at ${call} of ${file}, ${when}`,
    isInjected: true,
    counts: { file, call },
    under: (stateDir, calls) => {
      const shifted = when.replace(/\d+/g, (number) => String(Number(number) + calls));
      return [...traced(stateDir, file, call), "-e", `inject=${call}:error=${error}:when=${shifted}`];
    },
  };
}

/** With `--seccomp-bpf` it stops the daemon at these calls alone: a start makes thousands of others. */
function traced(stateDir: string, file: string, calls: string): readonly string[] {
  const strace = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", traceOf(stateDir), "-P", join(stateDir, file)];
  return [...strace, "-e", `trace=${calls}`];
}

/** The number of times that the main thread of a daemon calls `call` on `file` during its start. */
async function callsOfStart(file: string, call: string, directory: string): Promise<number> {
  const stateDir = join(directory, "start");
  mkdirSync(stateDir, { mode: 0o700 });
  const launch = new Launch(stateDir, join(directory, "agent"), traced(stateDir, file, call));
  const { client, pid } = await launch.next();
  await client.close();
  process.kill(pid, "SIGKILL");
  await launch.exited;
  const lines = readFileSync(traceOf(stateDir), "utf8").split("\n");
  return lines.filter((line) => line.startsWith(`${pid} `) && line.includes(` ${call}(`)).length;
}

/** strace's output: a fault may affect a write that refuses no push. */
function traceOf(stateDir: string): string {
  return `${stateDir}.strace`;
}

/** A file system of 12 MB that is filled up between two pushes and emptied again later. */
function fullDisk(from: number, to: number): Fault {
  return {
    name: `a full file system, pushes ${from} to ${to}`,
    isInjected: false,
    under: (stateDir) => {
      const mounted = `mount -t tmpfs -o size=12m,mode=700 none "$0" || exit 3; "$@"; exec "$@"`;
      return ["unshare", "-rm", "--propagation", "private", "sh", "-c", mounted, stateDir];
    },
    restarts: true,
    during: (stateDir, pushed, refused) => {
      if (pushed === from) fill(join(stateDir, "fill"));
      // Free space within the store's own files may suffice for some more pushes.
      if (pushed >= to && refused > 0) rmSync(join(stateDir, "fill"), { force: true });
    },
  };
}

/**
 * Like the faults above; writing is so slow that the daemon starts its writing thread, and only that thread reaches
 * the call.
 */
function injectedIntoThread(call: string, error: string, when: string): Fault {
  const file = "store.db-wal";
  return {
    name: `${error} at ${call} of ${file} in the writing thread, ${when}`,
    isInjected: true,
    under: (stateDir) => [
      ...traced(stateDir, file, `${call},pwrite64`),
      ...["-e", "inject=pwrite64:delay_exit=500", "-e", `inject=${call}:error=${error}:when=${when}`],
    ],
  };
}

const all: readonly Fault[] = [
  ...["1", "13", "32..36"].map((when) => injected("store.db-wal", "fsync", "EIO", when)),
  ...["2", "25..28", "31"].map((when) => injected("store.db-wal", "fsync", "ENOSPC", when)),
  ...["1", "41..100", "180"].map((when) => injected("store.db-wal", "pwrite64", "ENOSPC", when)),
  ...["5", "140..146", "230"].map((when) => injected("store.db-wal", "pwrite64", "EIO", when)),
  injectedIntoThread("fsync", "EIO", "70"),
  injectedIntoThread("fsync", "ENOSPC", "75..78"),
  // Each thread of the daemon has its own count: the one that checkpoints the WAL must reach it.
  { ...injected("store.db", "fsync", "EIO", "3+"), pushes: 480 },
  fullDisk(10, 25),
  fullDisk(30, 31),
  fullDisk(40, 60),
];

function fill(file: string): void {
  for (let bytes = 4 * 1024 * 1024; bytes >= 512; bytes /= 2) {
    try {
      for (;;) writeFileSync(file, Buffer.alloc(bytes), { flag: "a" });
    } catch {
      // Smaller pieces still fit.
    }
  }
}

interface Running {
  readonly pid: number;
  readonly client: Client;
  /** The state directory, as seen outside the mount namespace. */
  readonly stateDir: string;
}

/** A command that runs a daemon, and possibly a second one. */
class Launch {
  readonly #lines: AsyncIterator<string>;
  readonly #stateDir: string;
  readonly exited: Promise<unknown>;

  constructor(stateDir: string, agentDir: string, under: readonly string[]) {
    const options = ["--state-dir", stateDir, "--pi", join(root, "test", "fixtures", "fake-pi.mjs"), "--json"];
    const [command = "", ...args] = [...under, ...program, "start", "--foreground", ...options];
    const child = spawn(command, args, {
      stdio: ["ignore", "pipe", "ignore"],
      env: { ...process.env, PI_CODING_AGENT_DIR: agentDir },
    });
    this.#stateDir = stateDir;
    this.#lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
    this.exited = once(child, "exit");
  }

  async next(): Promise<Running> {
    const { value, done } = await this.#lines.next();
    if (done === true) throw new Error("The daemon did not start.");
    const { pid, url } = JSON.parse(value) as { readonly pid: number; readonly url: string };
    const stateDir = `/proc/${pid}/root${this.#stateDir}`;
    const token = readFileSync(join(stateDir, "token"), "utf8").trim();
    return { pid, stateDir, client: await connect({ url, token }) };
  }
}

/** The error, or undefined. Throws if the fault cannot be injected here. */
async function check(fault: Fault, directory: string): Promise<string | undefined> {
  const stateDir = join(directory, "s");
  const agentDir = join(directory, "agent");
  for (const made of [stateDir, agentDir]) mkdirSync(made, { mode: 0o700 });
  const { counts } = fault;
  const calls = counts === undefined ? 0 : await callsOfStart(counts.file, counts.call, directory);
  const launch = new Launch(stateDir, agentDir, fault.under(stateDir, calls));
  const { client, pid, stateDir: seen } = await launch.next();
  const accepted: string[] = [];
  const refused: string[] = [];
  try {
    const session = await createdSession(client, directory);
    const isMetInTime = (): boolean => fault.isInjected || refused.length > 0;
    for (let i = 0; i < (fault.pushes ?? defaultPushes) || (!isMetInTime() && i < maxPushes); i += 1) {
      fault.during?.(seen, i, refused.length);
      const kind = await pushOne(client, session.id, `push-${i}`);
      (kind === "accepted" ? accepted : refused).push(`push-${i}`);
      if (kind !== "accepted" && kind !== "store_failed") return `a push was refused as ${kind}`;
      if (kind === "accepted") continue;
      const [known] = accepted;
      if (known !== undefined) await client.call("delivery/get", { deliveryId: known });
      await session.abort();
    }
    fault.during?.(seen, maxPushes, refused.length);
    const isMet = fault.isInjected ? readFileSync(traceOf(stateDir), "utf8").includes("INJECTED") : refused.length > 0;
    if (!isMet) return "the fault did not occur";
    if (accepted.length === 0) return "nothing was accepted";
    const recovered = await untilOpen(client, session.id);
    accepted.push(...recovered.accepted);
    refused.push(...recovered.refused);
    if (recovered.state !== "open")
      return `the store is ${recovered.state} after ${recoverWithinMs} ms: ${recovered.why}`;
  } finally {
    await client.close();
    process.kill(pid, "SIGKILL");
    if (fault.restarts !== true) await launch.exited;
  }
  const another = fault.restarts === true ? launch : new Launch(stateDir, agentDir, []);
  return await compare(another, accepted, refused);
}

/** Compares the pushes with the content that the next daemon finds. */
async function compare(launch: Launch, accepted: readonly string[], refused: readonly string[]) {
  const { client, pid } = await launch.next();
  try {
    const { store } = await client.info();
    if (store === undefined || store.damaged.length > 0) return `the store was damaged: ${store?.damaged[0]?.why}`;
    for (const id of accepted) if (!(await isKnown(client, id))) return `${id} was accepted and is lost`;
    for (const id of refused) if (await isKnown(client, id)) return `${id} was refused and is there`;
    return undefined;
  } finally {
    await client.close();
    process.kill(pid, "SIGTERM");
    await launch.exited;
  }
}

async function untilOpen(client: Client, sessionId: string) {
  const outcome = { state: "failing", why: "", accepted: [] as string[], refused: [] as string[] };
  const deadline = performance.now() + recoverWithinMs;
  for (let i = 0; outcome.state !== "open" && performance.now() < deadline; i += 1) {
    const kind = await pushOne(client, sessionId, `later-${i}`);
    (kind === "accepted" ? outcome.accepted : outcome.refused).push(`later-${i}`);
    const { store } = await client.info();
    outcome.state = store?.state ?? "unknown";
    outcome.why = store?.why ?? "";
    if (outcome.state !== "open") await wait(100);
  }
  return outcome;
}

/** The fault may occur here, too: then the call had no effect. */
async function createdSession(client: Client, cwd: string): Promise<SessionHandle> {
  for (;;) {
    const session = await client.createSession({ cwd }).catch((error: unknown) => {
      if (nameOf(error) !== "store_failed") throw error;
    });
    if (session !== undefined) return session;
    await wait(100);
  }
}

async function pushOne(client: Client, sessionId: string, deliveryId: string): Promise<string> {
  const params = { sessionId, deliveryId, customType: "fault", content: "x".repeat(24_000) };
  return await client.call("delivery/push", params).then(() => "accepted", nameOf);
}

async function isKnown(client: Client, deliveryId: string): Promise<boolean> {
  const kind = await client.call("delivery/get", { deliveryId }).then(() => "known", nameOf);
  if (kind !== "known" && kind !== "delivery_not_found") throw new Error(`delivery/get: ${kind}`);
  return kind === "known";
}

function nameOf(error: unknown): string {
  return error instanceof WireError ? error.kind : String(error);
}

/** Whether this machine can inject a fault. */
async function canInject({ under }: Fault, directory: string): Promise<boolean> {
  const probe = join(directory, "probe");
  mkdirSync(probe, { recursive: true });
  const [command = "", ...args] = [...under(probe, 0), "true"];
  return (await run(command, args)).code === 0;
}

/** A fault of either kind. */
interface Check {
  readonly name: string;
  readonly canInject: (directory: string) => Promise<boolean>;
  readonly check: (directory: string) => Promise<string | undefined>;
}

const checks: readonly Check[] = [
  ...all.map((fault) => ({
    name: fault.name,
    canInject: (directory: string) => canInject(fault, directory),
    check: (directory: string) => check(fault, directory),
  })),
  ...systemFaults.map((fault) => ({ ...fault, canInject: (directory: string) => isPossible(fault, directory) })),
];

// Arguments select the faults whose names contain one of them.
const wanted = process.argv.slice(2);
let passed = 0;
let failed = 0;
let notRun = 0;
for (const { name, canInject: can, check: look } of checks) {
  if (wanted.length > 0 && !wanted.some((part) => name.includes(part))) continue;
  const directory = mkdtempSync(join(tmpdir(), "faults-"));
  try {
    if (await can(directory)) {
      const wrong = await look(directory).catch((error: unknown) => String(error));
      console.log(`${wrong === undefined ? "passed" : "FAILED"}: ${name}${wrong === undefined ? "" : `: ${wrong}`}`);
      if (wrong === undefined) passed += 1;
      else failed += 1;
    } else {
      console.log(`not run, because this machine cannot inject it: ${name}`);
      notRun += 1;
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
if (notRun > 0)
  console.log(
    `${notRun} faults were not run: they need strace 5.3 or newer, faketime, and the right to mount a tmpfs.`,
  );
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed > 0 ? 1 : notRun > 0 ? 3 : 0);
