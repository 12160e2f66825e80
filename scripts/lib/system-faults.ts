import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { type Client, connect, type SessionHandle } from "../../client/index.ts";
import { WireError } from "../../protocol/errors.ts";
import { program } from "../../test/helpers/programs.ts";
import { root, run } from "./command.ts";

// Faults of the system: no more processes, and a changed clock. Each check returns an error, or nothing.

export interface SystemFault {
  readonly name: string;
  /** A command that succeeds if the fault is possible here. */
  readonly probe: readonly string[];
  readonly check: (directory: string) => Promise<string | undefined>;
}

interface Running {
  readonly pid: number;
  readonly client: Client;
  stop(signal: NodeJS.Signals): Promise<void>;
}

/** Runs a daemon with the fake pi under another command. */
async function startUnder(under: readonly string[], directory: string, env: NodeJS.ProcessEnv = {}): Promise<Running> {
  const options = [
    "--state-dir",
    join(directory, "s"),
    "--pi",
    join(root, "test", "fixtures", "fake-pi.mjs"),
    "--json",
  ];
  const [command = "", ...args] = [...under, ...program, "start", "--foreground", ...options];
  const child = spawn(command, args, {
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, PI_CODING_AGENT_DIR: join(directory, "agent"), ...env },
  });
  const exited = once(child, "exit");
  const { value, done } = await createInterface({ input: child.stdout })[Symbol.asyncIterator]().next();
  if (done === true) throw new Error("The daemon did not start.");
  const { pid } = JSON.parse(value) as { readonly pid: number };
  const client = await connect({ stateDir: join(directory, "s") });
  const stop = async (signal: NodeJS.Signals): Promise<void> => {
    await client.close();
    process.kill(pid, signal);
    await exited;
  };
  return { pid, client, stop };
}

/** Some starts fail because no process is available; running sessions continue, and later starts work. */
async function noProcesses(directory: string): Promise<string | undefined> {
  const inject = ["-e", "trace=clone,fork,vfork", "-e", "inject=clone,fork,vfork:error=EAGAIN:when=4..6"];
  const { client, stop } = await startUnder(
    ["strace", "-f", "--seccomp-bpf", "-qq", "-o", join(directory, "trace"), ...inject],
    directory,
  );
  try {
    const sessions: SessionHandle[] = [];
    let refused = 0;
    for (let i = 0; i < 8; i += 1) {
      const made = await client.createSession({ cwd: directory }).catch((error: unknown) => error);
      if (!(made instanceof Error)) sessions.push(made as SessionHandle);
      else if (!(made instanceof WireError) || made.kind !== "overloaded" || made.data["retryAfterMs"] === undefined) {
        return `a start without an available process was answered with ${made}`;
      } else refused += 1;
      for (const session of sessions) await session.runUntilSettled("hello");
    }
    return refused === 0 || sessions.length < 4
      ? `${refused} starts were refused, ${sessions.length} succeeded`
      : undefined;
  } finally {
    await stop("SIGTERM");
  }
}

const library = "/usr/lib/$(uname -m)-linux-gnu/faketime/libfaketime.so.1";

/**
 * Sets the clock forward by an hour, back by two and forward again, with an active run and an open push each time;
 * then starts another daemon.
 */
async function clockJumps(directory: string): Promise<string | undefined> {
  const file = join(directory, "clock");
  const set = (offset: string): void => writeFileSync(file, `${offset}\n`);
  set("+0");
  const { output } = await run("sh", ["-c", `echo ${library}`]);
  const env = {
    LD_PRELOAD: output.trim(),
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    DONT_FAKE_MONOTONIC: "1",
  };
  const clocks = new Set<number>();
  let highest = 0;
  const look = async (session: SessionHandle): Promise<string | undefined> => {
    const { cursor, updatedAt } = await session.get();
    clocks.add(Math.round((updatedAt - Date.now()) / 3_600_000));
    if (cursor <= highest) return `the cursor is ${cursor}, but events up to ${highest} were sent`;
    highest = cursor;
    return undefined;
  };
  const first = await startUnder([], directory, env);
  let sessionId: string;
  let connections = 0;
  try {
    const session = await first.client.createSession({ cwd: directory });
    sessionId = session.id;
    const waiting = session.push({ customType: "n", content: "x", deliverAs: "nextTurn", expiresAfterMs: 600_000 });
    await waiting.accepted;
    connections = (await first.client.info()).connections;
    for (const offset of ["+1h", "-1h", "+0", "+1h"]) {
      set(offset);
      await session.runUntilSettled("hello");
      const wrong = await look(session);
      if (wrong !== undefined) return `${offset}: ${wrong}`;
      const { state } = await waiting.get();
      if (state === "expired") return `${offset}: a push expired with the clock`;
      if ((await first.client.info()).connections < connections) return `${offset}: connections were lost`;
    }
  } finally {
    await first.stop("SIGKILL");
  }
  set("-1h");
  const second = await startUnder([], directory, env);
  try {
    const session = second.client.session(sessionId);
    await session.runUntilSettled("hello");
    const wrong = await look(session);
    if (wrong !== undefined) return `after a restart: ${wrong}`;
    return clocks.size < 3 ? `the clock was not set: ${[...clocks].join(", ")}` : undefined;
  } finally {
    await second.stop("SIGTERM");
  }
}

/** Stops the daemon for longer than two pings take, like a suspended laptop: connections must survive the pause. */
async function sleeps(directory: string): Promise<string | undefined> {
  const { client, pid, stop } = await startUnder([], directory);
  const ends: string[] = [];
  client.onConnection((event) => ends.push(event.kind));
  try {
    const session = await client.createSession({ cwd: directory });
    process.kill(pid, "SIGSTOP");
    await new Promise((resolve) => setTimeout(resolve, 35_000));
    process.kill(pid, "SIGCONT");
    await session.runUntilSettled("hello");
    return ends.length > 0 ? `the connection was lost: ${ends.join(", ")}` : undefined;
  } finally {
    await stop("SIGTERM");
  }
}

export const systemFaults: readonly SystemFault[] = [
  {
    name: "EAGAIN at the start of processes",
    probe: ["strace", "-f", "--seccomp-bpf", "-o", "/dev/null", "true"],
    check: noProcesses,
  },
  { name: "a changed clock", probe: ["sh", "-c", `test -e ${library}`], check: clockJumps },
  { name: "a daemon suspended for 35 s", probe: ["true"], check: sleeps },
];

export async function isPossible({ probe }: SystemFault, directory: string): Promise<boolean> {
  mkdirSync(directory, { recursive: true });
  const [command = "", ...args] = probe;
  return (await run(command, args)).code === 0;
}
