import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "../../client/index.ts";
import { createAgentDir } from "../../provider/agent-dir.ts";
import { startProvider } from "../../provider/server.ts";
import { DaemonLives } from "./daemon-lives.ts";
import { piUnderTest } from "./pi-versions.ts";
import { endLeft, type Stage, type StageOptions } from "./stage.ts";

/** Like the stage, with a daemon in a separate process. */
export interface KillableStage extends Omit<Stage, "daemon" | "restart"> {
  /**
   * `kill -9` of the daemon, then another on the same state; `client` then belongs to the new daemon. `between` is
   * called without a daemon.
   */
  restart(between?: () => void): Promise<void>;
}

export interface KillableStageOptions extends Omit<StageOptions, "helper" | "edgeLimits"> {
  /** A command that runs the daemon, with its arguments. */
  readonly prefix?: readonly string[];
}

export async function startKillableStage(options: KillableStageOptions = {}): Promise<KillableStage> {
  const root = mkdtempSync(join(tmpdir(), "e2e-"));
  const cwd = join(root, "cwd");
  const stateDir = join(root, "state");
  mkdirSync(cwd);
  const provider = await startProvider(options.provider);
  const agentDir = await createAgentDir({ provider, parentDir: root, ...options.agent });
  if (options.config !== undefined) {
    mkdirSync(join(root, "config", "pi-rpcd"), { recursive: true });
    writeFileSync(join(root, "config", "pi-rpcd", "config.json"), options.config);
  }
  const faults: string[] = [];
  const lives = new DaemonLives({
    onFault: (message) => faults.push(message),
    stateDir,
    cwd,
    env: {
      ...process.env,
      ...agentDir.env,
      ...options.env?.(provider),
      PI_RPCD_PI: options.pi ?? piUnderTest().cli,
      PI_RPCD_VALIDATE: "1",
      ...(options.config === undefined ? {} : { XDG_CONFIG_HOME: join(root, "config") }),
    },
  });
  const end = async (signal: "SIGKILL" | "SIGTERM"): Promise<void> => {
    await lives.end(signal);
    if (signal === "SIGKILL") endLeft(agentDir.env);
    await provider.close();
    rmSync(root, { recursive: true, force: true, maxRetries: 10, retryDelay: 100 });
  };
  const start = async (): Promise<Stage["client"]> => {
    await lives.start(options.prefix);
    return await connect({ stateDir, validateResults: true });
  };
  let client = await start().catch(async (error: unknown) => {
    await end("SIGKILL");
    throw error;
  });
  return {
    root,
    cwd,
    stateDir,
    provider,
    agentDir,
    get client() {
      return client;
    },
    session: (api = "scripted") => client.createSession({ cwd, model: `${api}/model-1` }),
    restart: async (between) => {
      await lives.end("SIGKILL");
      await client.close();
      between?.();
      client = await start();
    },
    [Symbol.asyncDispose]: async () => {
      await client.close();
      await end("SIGTERM");
      if (faults.length > 0) throw new Error(faults.join("\n"));
    },
  };
}
