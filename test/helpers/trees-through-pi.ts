import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { PreparedContext } from "../../context/document/built.ts";
import type { ContextTarget } from "../../context/document/document.ts";
import { prepareContext } from "../../context/document/prepare.ts";
import { sessionEntries } from "../../context/document/session-entries.ts";
import { defaultContextLimits } from "../../protocol/context-limits.ts";
import { WireError } from "../../protocol/errors.ts";
import type { LogEntry } from "../../provider/log.ts";
import { answer } from "../../provider/reply.ts";
import { type ScriptedProvider, startProvider } from "../../provider/server.ts";
import { type Pi, startPi } from "../integration/extension/driver.ts";
import { makeTree } from "./context-trees.ts";
import { preparedRequest, type SaidRequest, sentRequest, type TreeService } from "./said.ts";

// Sends trees with flaws through a real pi: each becomes a session file, one pi switches from file to file, and gets
// one
// prompt in each. The strict service must accept the request, which must match the prepared one.

const model = { id: "model-1", takesImages: true } as const;

/** The model of each service that the trees are prepared for. pi behaves by the names of the services. */
const targets: Readonly<Record<TreeService, ContextTarget>> = {
  "openai-completions": { ...model, api: "openai-completions", provider: "openai", takesImages: false },
  "openai-responses": { ...model, api: "openai-responses", provider: "scripted-responses" },
  "anthropic-messages": { ...model, api: "anthropic-messages", provider: "anthropic" },
};

export const treeServices = Object.keys(targets) as readonly TreeService[];

/** What was wrong with a tree's request. */
export interface TreeFailure {
  readonly seed: number;
  /** Why the service refused it, or another fault; empty if it only differs from the prepared one. */
  readonly faults: readonly string[];
  /** Differences, message by message: only prepared (`-`), only sent (`+`). */
  readonly differences: readonly string[];
}

export interface TreesReport {
  /** How many trees went through pi; in the others the node selects nothing. */
  readonly sent: number;
  /** How often each rule repaired something in them. */
  readonly repairs: Readonly<Record<string, number>>;
  readonly failures: readonly TreeFailure[];
}

const question = "And what of all this is true?";

/** A pi with the helper that switches through trees, and its strict provider. */
export class TreesPi implements AsyncDisposable {
  readonly #pi: Pi;
  readonly #provider: ScriptedProvider;
  #files = 0;

  private constructor(pi: Pi, provider: ScriptedProvider) {
    this.#pi = pi;
    this.#provider = provider;
  }

  /** `cli`: pi's program; by default that of the tested version. */
  static async start(cli?: string): Promise<TreesPi> {
    const provider = await startProvider({ otherwise: () => answer("Yes."), maxLogEntries: 10, userFirst: true });
    const models = [{ id: "model-1", input: ["text", "image"], reasoning: true }];
    const aliases = { openai: "scripted", anthropic: "scripted-anthropic" } as const;
    const pi = await startPi({ provider, models, aliases, ...(cli === undefined ? {} : { cli }) });
    return new TreesPi(pi, provider);
  }

  /** Switches pi through the trees of these seeds. */
  async through(service: TreeService, seeds: Iterable<number>): Promise<TreesReport> {
    const failures: TreeFailure[] = [];
    const repairs: Record<string, number> = {};
    let sent = 0;
    for (const seed of seeds) {
      const prepared = preparedTree(seed, targets[service]);
      if (prepared === undefined) continue;
      const failure = await this.#ask(service, seed, prepared);
      if (failure !== undefined) failures.push(failure);
      sent += 1;
      for (const [code, times] of Object.entries(prepared.counts.repairs)) repairs[code] = (repairs[code] ?? 0) + times;
    }
    return { sent, repairs, failures };
  }

  async #ask(service: TreeService, seed: number, prepared: PreparedContext): Promise<TreeFailure | undefined> {
    const before = this.#provider.requests.at(-1)?.n ?? 0;
    await this.#prompt(service, prepared);
    const requests = this.#provider.requests.filter(({ n }) => n > before);
    const expected = preparedRequest(prepared, question, service);
    const sent = requests.map((request) => sentRequest(request, service));
    const faults = requests.flatMap((request) => faultsOf(request));
    if (faults.length === 0 && isDeepStrictEqual(sent, [expected])) return undefined;
    return { seed, faults, differences: differencesOf([expected], sent) };
  }

  /** Makes pi continue the session that the context produces, until it is idle. */
  async #prompt(service: TreeService, prepared: PreparedContext): Promise<void> {
    const pi = this.#pi;
    const id = `tree-${this.#files++}`;
    const file = join(pi.directory, "sessions", `${id}.jsonl`);
    const lines = [...sessionEntries(prepared, { id, timestamp: 1_795_187_000_000, cwd: pi.cwd })];
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 });
    await pi.replaceSession(file);
    // For each file pi takes the model that it was started with.
    const { provider, id: modelId } = targets[service];
    await pi.rpc({ type: "set_model", provider, modelId });
    await pi.rpc({ type: "prompt", message: question });
    await pi.settled();
    rmSync(file);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#pi[Symbol.asyncDispose]();
    await this.#provider.close();
  }
}

function faultsOf({ violations, outcome }: LogEntry): readonly string[] {
  return outcome === "answered" ? violations : [...violations, `outcome: ${outcome ?? "none"}`];
}

function differencesOf(prepared: readonly SaidRequest[], sent: readonly SaidRequest[]): readonly string[] {
  const [from, to] = [prepared, sent].map((requests) => requests.flatMap(linesOf));
  return (from ?? []).flatMap((line, index) => (line === to?.[index] ? [] : [`- ${line}`, `+ ${to?.[index] ?? ""}`]));
}

function linesOf({ api, instructions, messages }: SaidRequest): readonly string[] {
  return [api, ...instructions, ...messages].map((line) => JSON.stringify(line));
}

/** The context of a seed's tree; undefined if its node selects nothing. */
function preparedTree(seed: number, target: ContextTarget): PreparedContext | undefined {
  const { document, nodeId } = makeTree(seed, { target });
  try {
    return prepareContext(document, { nodeId, until: "through" }, target, defaultContextLimits);
  } catch (error) {
    if (error instanceof WireError && error.data["code"] === "nothing_selected") return undefined;
    throw new Error(`seed ${seed}`, { cause: error });
  }
}
