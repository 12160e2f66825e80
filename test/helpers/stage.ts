import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Logger, pino } from "pino";
import { type Client, connect, type SessionHandle } from "../../client/index.ts";
import { type AgentDir, type AgentDirOptions, createAgentDir, type ScriptedName } from "../../provider/agent-dir.ts";
import { type ProviderOptions, type ScriptedProvider, startProvider } from "../../provider/server.ts";
import { type Daemon, startDaemon } from "../../server/daemon.ts";
import type { EdgeLimits } from "../../server/edge/limits.ts";
import { signal } from "../../server/pi/processes.ts";
import { processesWith } from "../setup/processes.ts";
import { piUnderTest } from "./pi-versions.ts";
import { helper } from "./programs.ts";

/** The complete system with only the model faked: real pi, the scripted provider, a daemon, and a client. */
export interface Stage extends AsyncDisposable {
  readonly root: string;
  readonly cwd: string;
  readonly stateDir: string;
  readonly provider: ScriptedProvider;
  readonly agentDir: AgentDir;
  readonly daemon: Daemon;
  readonly client: Client;
  /** A session on the scripted model. */
  session(api?: ScriptedName): Promise<SessionHandle>;
  /**
   * Ends the daemon gracefully and starts another on the same state; `client` then belongs to the new daemon.
   * `between` is called while no daemon runs.
   */
  restart(between?: () => void): Promise<void>;
}

export interface StageOptions {
  readonly provider?: ProviderOptions;
  readonly agent?: Omit<AgentDirOptions, "provider">;
  /** Additional environment variables for pi. */
  readonly env?: (provider: ScriptedProvider) => Readonly<Record<string, string>>;
  /** The text of the daemon's configuration file. Default: no file. */
  readonly config?: string;
  /** Other bounds of the daemon's edge than the usual ones. */
  readonly edgeLimits?: Partial<EdgeLimits>;
  /** Default: the one under test. */
  readonly helper?: string;
  /** Default: the pi under test. */
  readonly pi?: string;
  /** Default: none. */
  readonly log?: Logger;
}

/** A configuration in which children end with their daemon. */
export const endingWithDaemon = JSON.stringify({ liveRestore: false });

/** Ends what a killed daemon has left: pi processes that wait for the next one. They have this in their environments. */
export function endLeft({ PI_CODING_AGENT_DIR: directory }: NodeJS.ProcessEnv): void {
  for (const { pid } of processesWith(`PI_CODING_AGENT_DIR=${directory}`)) signal(pid, "SIGKILL");
}

export async function startStage(options: StageOptions = {}): Promise<Stage> {
  const root = mkdtempSync(join(tmpdir(), "e2e-"));
  try {
    return await startIn(root, options);
  } catch (error) {
    rmSync(root, { recursive: true });
    throw error;
  }
}

async function startIn(root: string, options: StageOptions): Promise<Stage> {
  const cwd = join(root, "cwd");
  const stateDir = join(root, "state");
  mkdirSync(cwd);
  const configFile = options.config === undefined ? undefined : join(root, "config.json");
  if (configFile !== undefined) writeFileSync(configFile, options.config ?? "");
  const provider = await startProvider(options.provider);
  const agentDir = await createAgentDir({ provider, parentDir: root, ...options.agent });

  const start = async (): Promise<{ daemon: Daemon; client: Client }> => {
    const daemon = await startDaemon({
      stateDir,
      pi: options.pi ?? piUnderTest().cli,
      helper: options.helper ?? helper,
      drainMs: 0,
      config: configFile,
      edgeLimits: options.edgeLimits,
      env: {
        ...process.env,
        ...agentDir.env,
        ...options.env?.(provider),
        PI_RPCD_VALIDATE: "1",
      },
      log: options.log ?? pino({ level: "silent" }),
    });
    return { daemon, client: await connect({ stateDir, validateResults: true }) };
  };

  let current = await start().catch(async (error: unknown) => {
    await provider.close();
    throw error;
  });
  return {
    root,
    cwd,
    stateDir,
    provider,
    agentDir,
    get daemon() {
      return current.daemon;
    },
    get client() {
      return current.client;
    },
    session: (api = "scripted") => current.client.createSession({ cwd, model: `${api}/model-1` }),
    restart: async (between = () => {}) => {
      await current.client.close();
      await current.daemon.stop();
      between();
      current = await start();
    },
    [Symbol.asyncDispose]: async () => {
      await current.client.close();
      await current.daemon.stop();
      await agentDir.dispose();
      await provider.close();
      rmSync(root, { recursive: true });
    },
  };
}
