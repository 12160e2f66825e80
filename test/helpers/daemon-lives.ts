import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import { exists, signal } from "../../server/pi/processes.ts";
import { patience } from "./patience.ts";
import { main } from "./programs.ts";

export interface LivesOptions {
  /** The checkout whose `cli/main.ts` is run. Default: the command line under test. */
  readonly source?: string | undefined;
  readonly stateDir: string;
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string;
  /** Called for a daemon that ended unasked, or that did not end when it was asked to. */
  readonly onFault?: (message: string) => void;
}

const startTimeoutMs = patience.timeout;
const endTimeoutMs = patience.timeout;

/** The daemon in a separate process, one life after the other on the same state directory. */
export class DaemonLives {
  readonly logFile: string;
  readonly #options: LivesOptions;
  #process: ChildProcess | undefined;
  #daemonPid: number | undefined;
  #life = 0;
  #isEnding = false;

  constructor(options: LivesOptions) {
    this.#options = options;
    this.logFile = process.env["DBGLOG"] ?? join(options.stateDir, "..", "daemon.log");
  }

  /** The number of lives so far. */
  get life(): number {
    return this.#life;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  get isAlive(): boolean {
    return this.#process !== undefined && this.#process.exitCode === null && this.#process.signalCode === null;
  }

  /** How the last life ended, if by itself or gracefully. */
  get exitCode(): number | null | undefined {
    return this.#process?.exitCode;
  }

  /**
   * Starts the next life. `prefix` is a command that runs the daemon, such as strace. Rejects when the daemon does not
   * start.
   */
  async start(prefix: readonly string[] = []): Promise<DaemonFile> {
    this.#life += 1;
    const { source, stateDir, env, cwd } = this.#options;
    const program = source === undefined ? main : join(source, "cli", "main.ts");
    const args = ["--disable-warning=ExperimentalWarning", program, "start", "--foreground", "--json"];
    const [command = process.execPath, ...rest] = [...prefix, process.execPath, ...args, "--log-file", this.logFile];
    const child = spawn(command, rest, {
      cwd,
      env: { ...env, PI_RPCD_STATE_DIR: stateDir },
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.#process = child;
    this.#daemonPid = undefined;
    this.#isEnding = false;
    const { life } = this;
    child.once("exit", (code, signal) => {
      if (!this.#isEnding) this.#options.onFault?.(`life ${life} of the daemon ended by itself (${code ?? signal})`);
    });
    let said = "";
    const up = Promise.withResolvers<void>();
    const timer = setTimeout(() => up.reject(new Error(`The daemon did not come up: ${said}`)), startTimeoutMs);
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      said += text;
      if (said.includes("\n")) up.resolve();
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
    child.once("exit", (code, signal) =>
      up.reject(new Error(`The daemon ended (${code ?? signal}) at its start: ${said}`)),
    );
    try {
      await up.promise;
    } finally {
      clearTimeout(timer);
    }
    const file = JSON.parse(readFileSync(join(stateDir, "daemon.json"), "utf8")) as DaemonFile;
    this.#daemonPid = file.pid;
    return file;
  }

  /** Asks the daemon to end for a restart, and resolves with the exit code of its process. */
  async endForRestart(): Promise<number | null> {
    const child = this.#process;
    if (child === undefined) throw new Error("No daemon runs.");
    const gone = once(child, "exit");
    this.#isEnding = true;
    this.#signal("SIGUSR2");
    const [code] = await gone;
    return code as number | null;
  }

  /** Ends this life and waits for its end. Does nothing without one. */
  async end(signal: "SIGKILL" | "SIGTERM"): Promise<void> {
    const child = this.#process;
    if (child === undefined || !this.isAlive) return;
    const gone = once(child, "exit");
    this.#isEnding = true;
    this.#signal(signal);
    const late = setTimeout(() => {
      this.#options.onFault?.(`life ${this.#life} of the daemon did not end within ${endTimeoutMs} ms of ${signal}`);
      this.#signal("SIGKILL");
      child.kill("SIGKILL");
    }, endTimeoutMs);
    await this.#endPrefix(child);
    await gone;
    clearTimeout(late);
  }

  /** A tracer stays with a pi that survives the daemon, and blocks other signals. */
  async #endPrefix(child: ChildProcess): Promise<void> {
    const daemon = this.#daemonPid;
    if (daemon === undefined || daemon === child.pid) return;
    // The end of a process that another one started is no event.
    while (this.isAlive && exists(daemon)) await sleep(20);
    child.kill("SIGKILL");
  }

  /** To the daemon itself, not to its prefix command. */
  #signal(name: NodeJS.Signals): void {
    if (this.#daemonPid === undefined) this.#process?.kill(name);
    else signal(this.#daemonPid, name);
  }

  /** The log's lines at the level error. */
  errors(): readonly Record<string, unknown>[] {
    if (!existsSync(this.logFile)) return [];
    return readFileSync(this.logFile, "utf8")
      .split("\n")
      .filter((line) => line.startsWith("{") && line.endsWith("}"))
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter(({ level }) => level === "error" || level === "fatal" || (typeof level === "number" && level >= 50));
  }
}
