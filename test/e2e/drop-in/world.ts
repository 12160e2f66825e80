import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type AgentDir, createAgentDir } from "../../../provider/agent-dir.ts";
import { Gate } from "../../../provider/gate.ts";
import type { Step } from "../../../provider/script.ts";
import { type ScriptedProvider, startProvider } from "../../../provider/server.ts";

/** `model-1` takes images, `thinker` has thinking levels. */
const models = [
  { id: "model-1", input: ["text", "image"] },
  { id: "model-2" },
  { id: "thinker", reasoning: true },
] as const;

/** The points at which the scripted provider waits, by their names. */
export class Gates {
  readonly #gates = new Map<string, Gate>();

  named(name: string): Gate {
    const gate = this.#gates.get(name) ?? new Gate();
    this.#gates.set(name, gate);
    return gate;
  }
}

export interface WorldOptions {
  /** Settings of pi that replace those of the tests. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** Files by their names as in {@link World.path}, written before the program starts. */
  readonly files?: Readonly<Record<string, string>>;
  /** The provider's answers in order. Default: it echoes. */
  readonly script?: (gates: Gates) => readonly Step[];
}

/** Directories, an agent directory and a provider for one run of one scenario. Nothing in it existed before. */
export class World implements AsyncDisposable {
  readonly root: string;
  readonly cwd: string;
  readonly agentDir: AgentDir;
  readonly stateDir: string;
  readonly provider: ScriptedProvider;
  readonly gates: Gates;
  readonly env: NodeJS.ProcessEnv;

  private constructor(root: string, agentDir: AgentDir, provider: ScriptedProvider, gates: Gates) {
    this.root = root;
    this.cwd = join(root, "cwd");
    this.stateDir = join(root, "state");
    this.agentDir = agentDir;
    this.provider = provider;
    this.gates = gates;
    this.env = {
      // pi keeps its compiled code in TMPDIR, unless this is set.
      NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"),
      ...process.env,
      ...agentDir.env,
      HOME: join(root, "home"),
      TMPDIR: join(root, "tmp"),
    };
  }

  static async open({ script, settings, files = {} }: WorldOptions): Promise<World> {
    // The system prompt has the directory's name, so its length must always be the same: the model's usage depends on it.
    const root = realpathSync(mkdtempSync(join(tmpdir(), "twin-")));
    for (const name of ["cwd", "home", "tmp"]) mkdirSync(join(root, name));
    const gates = new Gates();
    const provider = await startProvider({ script: script?.(gates) ?? [] });
    try {
      const agentDir = await createAgentDir({ provider, models, parentDir: root, ...(settings && { settings }) });
      const world = new World(root, agentDir, provider, gates);
      for (const [name, content] of Object.entries(files)) world.write(name, content);
      return world;
    } catch (error) {
      await provider.close();
      rmSync(root, { recursive: true });
      throw error;
    }
  }

  /** The absolute path of a file: `cwd/…`, `agent/…` (the agent directory), or any other name below the root. */
  path(name: string): string {
    return name.startsWith("agent/") ? join(this.agentDir.path, name.slice("agent/".length)) : join(this.root, name);
  }

  /** Writes a file, and creates its directory. `<root>` in its content is this world's root. */
  write(name: string, content: string): void {
    mkdirSync(dirname(this.path(name)), { recursive: true });
    writeFileSync(this.path(name), content.replaceAll("<root>", this.root));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.provider.close();
    rmSync(this.root, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }
}
