import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DaemonFile } from "../../../protocol/daemon-file.ts";
import { createAgentDir } from "../../../provider/agent-dir.ts";
import { type ProviderOptions, type ScriptedProvider, startProvider } from "../../../provider/server.ts";
import { piUnderTest } from "../../helpers/pi-versions.ts";
import { program } from "../../helpers/programs.ts";
import { endLeft } from "../../helpers/stage.ts";

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions {
  readonly stdin?: string | Buffer;
  /** Leaves its stdin open, for {@link Running.write}. */
  readonly keepOpen?: boolean;
  readonly cwd?: string;
  readonly env?: NodeJS.ProcessEnv;
}

/** One running command. */
export class Running {
  /** Resolves when it has ended and all its output was read. */
  readonly ended: Promise<Ended>;
  readonly #child: ChildProcess;
  readonly #watchers = new Set<() => void>();
  #stdout = "";
  #stderr = "";

  constructor(args: readonly string[], { stdin = "", keepOpen = false, cwd, env }: RunOptions) {
    const [command, ...before] = program;
    this.#child = spawn(command, [...before, ...args], {
      cwd,
      env,
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child.stdin?.on("error", () => {}).write(stdin);
    if (!keepOpen) this.#child.stdin?.end();
    this.#child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      this.#stdout += text;
      this.#look();
    });
    this.#child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      this.#stderr += text;
      this.#look();
    });
    this.ended = new Promise((resolve, reject) => {
      this.#child.once("error", reject);
      this.#child.once("close", (code, signal) => {
        resolve({ code, signal, stdout: this.#stdout, stderr: this.#stderr });
        this.#look();
      });
    });
  }

  get pid(): number {
    const { pid } = this.#child;
    if (pid === undefined) throw new Error("it did not start");
    return pid;
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  write(text: string): void {
    this.#child.stdin?.write(text);
  }

  /** Resolves when its output so far matches; rejects if it ends first. */
  async said(pattern: RegExp): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = (): void => {
      if (pattern.test(this.#stdout) || pattern.test(this.#stderr)) resolve();
    };
    this.#watchers.add(look);
    look();
    const gone = this.ended.then(({ code }) => {
      reject(new Error(`It ended with ${code} without ${pattern}.\n${this.#stdout}\n${this.#stderr}`));
    });
    void gone;
    await promise.finally(() => this.#watchers.delete(look));
  }

  #look(): void {
    for (const watcher of this.#watchers) watcher();
  }
}

/**
 * The command line as a user has it: real processes, the pi under test, a scripted model and its own state directory.
 */
export class Scene implements AsyncDisposable {
  readonly root: string;
  readonly cwd: string;
  readonly stateDir: string;
  readonly provider: ScriptedProvider;
  readonly env: NodeJS.ProcessEnv;
  readonly #running = new Set<Running>();

  private constructor(root: string, provider: ScriptedProvider, env: NodeJS.ProcessEnv) {
    this.root = root;
    this.cwd = join(root, "project");
    this.stateDir = join(root, "state");
    this.provider = provider;
    this.env = { ...env, PI_RPCD_STATE_DIR: this.stateDir };
    mkdirSync(this.cwd);
  }

  static async open(options: ProviderOptions = {}): Promise<Scene> {
    const root = mkdtempSync(join(tmpdir(), "cli-"));
    const provider = await startProvider(options);
    const agentDir = await createAgentDir({ provider, parentDir: root });
    return new Scene(root, provider, {
      ...process.env,
      ...agentDir.env,
      PI_RPCD_PI: piUnderTest().cli,
      PI_RPCD_VALIDATE: "1",
    });
  }

  /** Starts a command and returns it while it runs. */
  start(args: readonly string[], options: RunOptions = {}): Running {
    const running = new Running(args, { cwd: this.cwd, ...options, env: { ...this.env, ...options.env } });
    this.#running.add(running);
    void running.ended.finally(() => this.#running.delete(running)).catch(() => {});
    return running;
  }

  /** Runs a command to its end. */
  run(args: readonly string[], options: RunOptions = {}): Promise<Ended> {
    return this.start(args, options).ended;
  }

  /** Runs a command with `--json` that must succeed, and returns the last document. */
  async json<T = Readonly<Record<string, unknown>>>(args: readonly string[], options: RunOptions = {}): Promise<T> {
    const { code, stdout, stderr } = await this.run([...args, "--json"], options);
    if (code !== 0) throw new Error(`${args.join(" ")} ended with ${code}: ${stderr}`);
    return lines<T>(stdout).at(-1) as T;
  }

  /** Runs shell lines that call `pi-rpcd` and must succeed, and returns their output. */
  async shell(script: string, onOutput: (output: string) => void = () => {}): Promise<string> {
    const command = program.map((word) => `"${word}"`).join(" ");
    const child = spawn("bash", ["-euo", "pipefail", "-c", `pi-rpcd() { ${command} "$@"; }\n${script}`], {
      cwd: this.cwd,
      env: this.env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    let output = "";
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      onOutput(output);
    });
    const [code, signal] = await once(child, "close");
    if (code !== 0) throw new Error(`The shell ended with ${code ?? signal}: ${script}\n${output}`);
    return output;
  }

  get daemonFile(): DaemonFile | undefined {
    const path = join(this.stateDir, "daemon.json");
    return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as DaemonFile) : undefined;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const running of this.#running) running.kill("SIGKILL");
    await Promise.all([...this.#running].map(({ ended }) => ended));
    // If no daemon ran there is nothing to stop.
    const stopped = existsSync(this.stateDir) ? await this.run(["stop"]) : undefined;
    endLeft(this.env);
    await this.provider.close();
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
    if (stopped !== undefined && stopped.code !== 0)
      throw new Error(`The daemon could not be stopped: ${stopped.stderr}`);
  }
}

/** The documents of JSON lines. */
export function lines<T = Readonly<Record<string, unknown>>>(text: string): readonly T[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as T);
}

/** The name in the error object on stderr. */
export function errorName(stderr: string): string | undefined {
  const [found] = lines<{ readonly error?: { readonly name: string } }>(stderr).filter(
    ({ error }) => error !== undefined,
  );
  return found?.error?.name;
}
