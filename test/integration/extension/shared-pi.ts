import { once } from "node:events";
import { afterAll } from "vitest";
import { type ScriptedProvider, startProvider } from "../../../provider/server.ts";
import { type ScriptOptions, Scripts, type TestsProvider } from "../../helpers/scripts.ts";
import { type Pi, type PiOptions, startPi } from "./driver.ts";

// Starting pi takes most of a test's time. Tests that need only a new session, and with it a new helper, share
// a pi for each set of start options.

/** How long a pi may take to report that it is idle after a test, in milliseconds; then it is ended. */
const restsWithinMs = 5_000;

/** A pi with a new session, and the provider, for the duration of one test. */
export interface PiOfTest extends AsyncDisposable {
  readonly pi: Pi;
  readonly provider: TestsProvider;
}

export type SharedOptions = ScriptOptions & Omit<PiOptions, "provider">;

export interface SharedPi {
  /** Lends a pi with these start options to a test; only one test at a time has it. */
  use(options?: SharedOptions): Promise<PiOfTest>;
}

/** The pis of the tests of a file, started by the first test that uses them. */
export function sharePi(): SharedPi {
  const pool = new PiPool();
  afterAll(() => pool.end());
  return { use: (options = {}) => pool.use(options) };
}

class PiPool {
  readonly #scripts = new Scripts();
  readonly #running = new Set<Pi>();
  /** By their start options. */
  readonly #free = new Map<string, Pi>();
  #provider: ScriptedProvider | undefined;

  async use({ script, otherwise, ...rest }: SharedOptions): Promise<PiOfTest> {
    const options = { api: "scripted", ...rest } as const;
    this.#provider ??= await startProvider({ otherwise: this.#scripts.respond });
    const kind = JSON.stringify(options);
    const pi = (await this.#take(kind)) ?? (await startPi({ ...options, provider: this.#provider }));
    this.#running.add(pi);
    const provider = this.#scripts.begin(this.#provider, {
      ...(script === undefined ? {} : { script }),
      ...(otherwise === undefined ? {} : { otherwise }),
    });
    return { pi, provider, [Symbol.asyncDispose]: () => this.#leave(kind, { pi, provider }) };
  }

  async end(): Promise<void> {
    for (const pi of this.#running) await this.#stop(pi);
    await this.#provider?.close();
  }

  async #take(kind: string): Promise<Pi | undefined> {
    const pi = this.#free.get(kind);
    this.#free.delete(kind);
    await pi?.replaceSession();
    return pi;
  }

  /** Nothing of a test reaches the next one: a pi in an unexpected state is ended. */
  async #leave(kind: string, { pi, provider }: { pi: Pi; provider: TestsProvider }): Promise<void> {
    const isFit = provider.remainingSteps === 0 && (await isAtRest(pi));
    this.#scripts.end();
    if (isFit) this.#free.set(kind, pi);
    else await this.#stop(pi);
  }

  async #stop(pi: Pi): Promise<void> {
    this.#running.delete(pi);
    await pi[Symbol.asyncDispose]();
  }
}

/** Waits for the end of the run, if there is one; false on timeout. */
async function isAtRest(pi: Pi): Promise<boolean> {
  const late = AbortSignal.timeout(restsWithinMs);
  const isLate = once(late, "abort").then(() => undefined);
  try {
    while (!late.aborted) {
      const response = await Promise.race([pi.rpc({ type: "get_state" }), isLate]);
      const state = response?.["data"] as { isStreaming: boolean; isCompacting: boolean } | undefined;
      if (state !== undefined && !state.isStreaming && !state.isCompacting) return true;
    }
    return false;
  } catch {
    return false;
  }
}
