import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Client, type ConnectOptions, connect } from "../../client/index.ts";
import type { DaemonFile } from "../../protocol/daemon-file.ts";
import { type AgentDir, type AgentDirOptions, createAgentDir } from "../../provider/agent-dir.ts";
import { type ProviderOptions, type ScriptedProvider, startProvider } from "../../provider/server.ts";
import { settings as knownSettings } from "../../server/configuration/settings.ts";
import { processesWith, type RunningProcess } from "../setup/processes.ts";
import { DaemonLives } from "./daemon-lives.ts";
import { patience } from "./patience.ts";
import type { PiUnderTest } from "./pi-versions.ts";

const checkout = join(import.meta.dirname, "..", "..");
const teedPi = join(checkout, "test", "fixtures", "teed-pi.mjs");

/** How long processes may take to disappear after the daemon's orderly end, in milliseconds. */
const goneWithinMs = patience.timeout;

export interface RestoreStageOptions {
  readonly pi: PiUnderTest;
  /** The checkout whose daemon and helper are run. Default: those under test. */
  readonly source?: string;
  readonly provider?: ProviderOptions;
  readonly agent?: Omit<AgentDirOptions, "provider">;
  /** Settings of the daemon, in addition to `liveRestore`. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Names of fixture extensions that pi loads after the helper. */
  readonly extensions?: readonly string[];
  /** Additional environment variables of the daemon, and so of pi. */
  readonly env?: Readonly<Record<string, string>>;
}

/**
 * Real pi, the scripted provider, and one daemon after the other on the same state directory, each ended by `kill -9`
 * and each with `liveRestore`. pi's stdout is also written to a file, so that a test can compare what pi wrote with what
 * clients got.
 */
export class RestoreStage implements AsyncDisposable {
  readonly root: string;
  readonly cwd: string;
  readonly stateDir: string;
  readonly provider: ScriptedProvider;
  readonly agentDir: AgentDir;
  readonly lives: DaemonLives;
  /** Faults of the daemons' processes: ends that nobody asked for. */
  readonly faults: string[];
  /** NAME=value in the environment of every process of this stage. */
  readonly #marker: string;
  readonly #clients = new Set<Client>();
  #daemon: DaemonFile | undefined;
  #listening = Promise.withResolvers<DaemonFile>();

  private constructor(
    parts: Pick<RestoreStage, "root" | "provider" | "agentDir" | "lives" | "faults">,
    marker: string,
  ) {
    this.root = parts.root;
    this.cwd = join(parts.root, "cwd");
    this.stateDir = join(parts.root, "state");
    this.provider = parts.provider;
    this.agentDir = parts.agentDir;
    this.lives = parts.lives;
    this.faults = parts.faults;
    this.#marker = marker;
  }

  static async open(options: RestoreStageOptions): Promise<RestoreStage> {
    const root = mkdtempSync(join(tmpdir(), "restore-"));
    for (const name of ["cwd", "stdout", "config"]) mkdirSync(join(root, name));
    mkdirSync(join(root, "config", "pi-rpcd"));
    writeFileSync(join(root, "config", "pi-rpcd", "config.json"), liveRestoreConfig(options.settings));
    const provider = await startProvider(options.provider);
    const agentDir = await createAgentDir({ provider, parentDir: root, ...options.agent });
    mkdirSync(join(agentDir.path, "extensions"));
    for (const name of options.extensions ?? []) {
      const fixture = JSON.stringify(join(checkout, "test", "fixtures", "extension", `${name}.ts`));
      writeFileSync(join(agentDir.path, "extensions", `${name}.ts`), `export { default } from ${fixture};\n`);
    }
    const marker = `PI_RPCD_RESTORE_STAGE=${randomUUID()}`;
    const [name = "", value] = marker.split("=");
    const faults: string[] = [];
    const lives = new DaemonLives({
      source: options.source,
      stateDir: join(root, "state"),
      cwd: join(root, "cwd"),
      env: {
        ...process.env,
        ...agentDir.env,
        XDG_CONFIG_HOME: join(root, "config"),
        PI_RPCD_PI: teedPi,
        PI_RPCD_VALIDATE: "1",
        PI_RPCD_WARM_CHILDREN: "0",
        PI_UNDER_TEE: options.pi.cli,
        TEE_DIRECTORY: join(root, "stdout"),
        ...options.env,
        [name]: value,
      },
      onFault: (message) => faults.push(message),
    });
    const stage = new RestoreStage({ root, provider, agentDir, lives, faults }, marker);
    try {
      await stage.start();
      return stage;
    } catch (error) {
      await stage.#clean();
      throw error;
    }
  }

  /** Resolves when a daemon listens. */
  get listening(): Promise<DaemonFile> {
    return this.#listening.promise;
  }

  /** The daemon that listens; undefined between two of them. */
  get daemon(): DaemonFile | undefined {
    return this.#daemon;
  }

  /** Starts the next daemon and waits until it listens. */
  async start(prefix: readonly string[] = []): Promise<DaemonFile> {
    const file = await this.lives.start(prefix);
    this.#daemon = file;
    this.#listening.resolve(file);
    return file;
  }

  /** Starts a daemon and kills it after some milliseconds, listening or not. Returns whether it listened. */
  async startAndKill(afterMs: number): Promise<boolean> {
    const starting = this.start().then(
      () => true,
      () => false,
    );
    // Not a wait: the moment of the death is what tests vary.
    await sleep(afterMs);
    await this.kill();
    const hasListened = await starting;
    this.#forget();
    return hasListened;
  }

  /** `kill -9` of the daemon; resolves when it has ended. */
  async kill(): Promise<void> {
    this.#forget();
    await this.lives.end("SIGKILL");
  }

  /** Asks the daemon to end for a restart; resolves with its exit code. */
  async endForRestart(): Promise<number | null> {
    this.#forget();
    return await this.lives.endForRestart();
  }

  /** Kills the daemon and starts the next one. `between` runs without a daemon. */
  async replace(between: () => void | Promise<void> = () => {}): Promise<DaemonFile> {
    await this.kill();
    await between();
    return await this.start();
  }

  /** A client that outlives daemons. */
  async client(options: ConnectOptions = {}): Promise<Client> {
    const client = await connect({
      stateDir: this.stateDir,
      validateResults: true,
      reconnect: { firstDelayMs: 5, maxDelayMs: 100, giveUpAfterMs: Number.POSITIVE_INFINITY },
      ...options,
    });
    this.#clients.add(client);
    return client;
  }

  /** The processes of this stage: daemons, children and their tools. */
  get processes(): readonly RunningProcess[] {
    return processesWith(this.#marker);
  }

  /** The complete records that pi wrote to its stdout so far, as text. */
  records(pid: number): readonly string[] {
    const file = join(this.root, "stdout", String(pid));
    if (!existsSync(file)) return [];
    return readFileSync(file, "utf8").split("\n").slice(0, -1);
  }

  /** Ends everything in order. Throws when a daemon has ended unasked, or a process is left. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#clients].map((client) => client.close()));
    await this.lives.end("SIGTERM");
    const left = await this.#clean();
    const faults = [...this.faults, ...left];
    if (faults.length > 0) throw new Error(faults.join("\n"));
  }

  #forget(): void {
    if (this.#daemon !== undefined) this.#listening = Promise.withResolvers();
    this.#daemon = undefined;
  }

  /** Returns which processes had to be killed. */
  async #clean(): Promise<readonly string[]> {
    await this.lives.end("SIGKILL");
    const deadline = Date.now() + goneWithinMs;
    let left = this.processes;
    while (left.length > 0 && Date.now() < deadline) {
      // The end of a process that another one started is no event.
      await sleep(50);
      left = this.processes;
    }
    for (const { pid } of left) process.kill(pid, "SIGKILL");
    await this.provider.close();
    rmSync(this.root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
    return left.map(({ pid, command }) => `process ${pid} is left: ${command}`);
  }
}

/** A configuration file in which children outlive the daemon, and any test that waits for one to end. */
export function liveRestoreConfig(more: Readonly<Record<string, unknown>> = {}): string {
  const settings = Object.entries({ liveRestore: true, orphanIdleMs: 86_400_000, ...more });
  // A daemon does not start with a setting that it does not know; without the setting the tests say what is missing.
  const known = settings.filter(([name]) => Object.hasOwn(knownSettings, name));
  return JSON.stringify(Object.fromEntries(known));
}

/** Whether a record of pi's is an event for clients: not a response, and not a frame of the helper. */
export function isEvent(record: string): boolean {
  const { type, method, statusKey } = JSON.parse(record) as Record<string, unknown>;
  return type !== "response" && !(method === "setStatus" && String(statusKey).startsWith("pi-rpcd"));
}
