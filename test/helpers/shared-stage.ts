import { afterAll } from "vitest";
import type { Client, SessionHandle } from "../../client/index.ts";
import { isTerminal } from "../../protocol/delivery-progress.ts";
import type { ScriptedName } from "../../provider/agent-dir.ts";
import { type ScriptOptions, Scripts, type TestsProvider } from "./scripts.ts";
import { type Stage, type StageOptions, startStage } from "./stage.ts";

// Starting pi takes most of a test's time. Tests that do not depend on a session's history share a
// stage and its idle sessions; each has its own script, and sees the requests since it began.

/** How long a session may take to become idle after a test, in milliseconds; then it is closed. */
const restsWithinMs = 5_000;

/** A shared stage for the duration of one test. */
export interface StageOfTest
  extends AsyncDisposable,
    Pick<Stage, "root" | "cwd" | "stateDir" | "agentDir" | "daemon" | "client" | "restart"> {
  readonly provider: TestsProvider;
  /** An idle session of an earlier test, with nothing left but its transcript; otherwise a new one. */
  session(api?: ScriptedName): Promise<SessionHandle>;
  /** A session whose pi was just started and whose transcript is empty. */
  freshSession(api?: ScriptedName): Promise<SessionHandle>;
}

export interface SharedOptions extends Omit<StageOptions, "provider"> {
  /** Called before the first session exists. */
  readonly prepare?: (stage: Stage) => void;
}

export interface SharedStage {
  /** Lends the stage to a test; only one test at a time has it. */
  use(options?: ScriptOptions): Promise<StageOfTest>;
}

/** A stage for the tests of a file, started by the first that uses it. */
export function shareStage(options: SharedOptions = {}): SharedStage {
  const pool = new StagePool(options);
  afterAll(() => pool.end());
  return { use: (script = {}) => pool.use(script) };
}

interface IdleSession {
  readonly id: string;
  readonly api: ScriptedName;
}

class StagePool {
  readonly #options: SharedOptions;
  readonly #scripts = new Scripts();
  #stage: Stage | undefined;
  #free: IdleSession[] = [];

  constructor(options: SharedOptions) {
    this.#options = options;
  }

  async use(script: ScriptOptions): Promise<StageOfTest> {
    this.#stage ??= await this.#start();
    const stage = this.#stage;
    const provider = this.#scripts.begin(stage.provider, script);
    const taken: IdleSession[] = [];
    const freshSession = async (api: ScriptedName = "scripted"): Promise<SessionHandle> => {
      const session = await stage.session(api);
      taken.push({ id: session.id, api });
      return session;
    };
    const session = async (api: ScriptedName = "scripted"): Promise<SessionHandle> => {
      const room = this.#free.find((free) => free.api === api);
      if (room === undefined) return await freshSession(api);
      this.#free = this.#free.filter((free) => free !== room);
      taken.push(room);
      return stage.client.session(room.id);
    };
    const { root, cwd, stateDir, agentDir } = stage;
    return {
      ...{ root, cwd, stateDir, provider, agentDir, session, freshSession },
      get daemon() {
        return stage.daemon;
      },
      get client() {
        return stage.client;
      },
      restart: async (between) => {
        // They have no pi any more.
        this.#free = [];
        await stage.restart(between);
      },
      [Symbol.asyncDispose]: () => this.#leave(stage, { provider, taken }),
    };
  }

  async #start(): Promise<Stage> {
    const stage = await startStage({ ...this.#options, provider: { otherwise: this.#scripts.respond } });
    this.#options.prepare?.(stage);
    return stage;
  }

  async end(): Promise<void> {
    const stage = this.#stage;
    this.#stage = undefined;
    this.#free = [];
    await stage?.[Symbol.asyncDispose]();
  }

  /**
   * Nothing of a test reaches the next one: a session in an unexpected state is closed; in doubt the whole stage is
   * closed.
   */
  async #leave(
    stage: Stage,
    { provider, taken }: { provider: TestsProvider; taken: readonly IdleSession[] },
  ): Promise<void> {
    const isUsedUp = provider.remainingSteps === 0;
    try {
      for (const room of taken) {
        if (isUsedUp && (await isAtRest(stage.client, room))) this.#free.push(room);
        else await stage.client.session(room.id).close().catch(ignoreClosed);
      }
    } catch {
      await this.end();
    } finally {
      this.#scripts.end();
    }
  }
}

function ignoreClosed(error: unknown): void {
  if ((error as { readonly kind?: unknown }).kind !== "session_not_found") throw error;
}

/** Whether a session is like a new one, except for its transcript. */
async function isAtRest(client: Client, { id, api }: IdleSession): Promise<boolean> {
  const session = client.session(id);
  try {
    await session.waitForIdle({ timeoutMs: restsWithinMs });
    const { state, restarts, model, lostPrompts, pendingDialogs, name, control } = await session.get();
    const { deliveries } = await client.call("delivery/list", { sessionId: id, limit: 500 });
    return (
      state === "idle" &&
      restarts === undefined &&
      `${model?.provider}/${model?.id}` === `${api}/model-1` &&
      lostPrompts.length + pendingDialogs.length === 0 &&
      name === undefined &&
      control === undefined &&
      deliveries.every(isTerminal)
    );
  } catch {
    return false;
  }
}
