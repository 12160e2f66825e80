import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ContextTarget } from "../../context/document/document.ts";
import { type BudgetFacts, contextBudget, defaultReserveTokens } from "../../context/document/options.ts";
import type { ContextOption } from "../../protocol/context-option.ts";
import { WireError } from "../../protocol/errors.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { PiModel } from "../../protocol/pi-data.ts";
import { canonicalJson } from "../lib/canonical-json.ts";
import { isExactModel } from "../pi/adopt.ts";
import { inputsOf } from "../pi/pi-inputs.ts";
import { isSpawnValue } from "../pi/safe-values.ts";
import { agentDirectoryOf } from "../pi/session-file.ts";
import type { StoredOptions } from "../store/stored-session.ts";
import { SharedAsks } from "./shared-asks.ts";

/** The start options of the session's pi. */
export interface TargetRequest {
  readonly cwd: string;
  readonly options: StoredOptions;
}

/** The model of a session's pi. */
export interface Target {
  readonly target: ContextTarget;
  /** The exact form for `--model`. */
  readonly model: string;
  /** The level of a pattern such as `model:high`. */
  readonly thinking?: string;
  readonly budget: BudgetFacts;
}

export interface TargetsOptions {
  readonly env: NodeJS.ProcessEnv;
  /** The models that a session would have. */
  readonly models: () => Promise<readonly PiModel[]>;
  /** The `get_state` data of a pi that is started with these options and without a session. */
  readonly probe: (request: TargetRequest, signal: AbortSignal) => Promise<unknown>;
  /** Identifies the pi version. */
  readonly program: () => Promise<string>;
  readonly maxKnown: number;
}

/** Finds the model for a context before its session's pi exists: ids, reasoning and images depend on it. */
export class Targets {
  readonly #options: TargetsOptions;
  /** pi's answers, by question. The oldest is dropped first. */
  readonly #known = new Map<string, { readonly inputs: string; readonly state: unknown }>();

  readonly #asks = new SharedAsks<unknown>();

  constructor(options: TargetsOptions) {
    this.#options = options;
  }

  /** Throws errors of starting pi, and `model_not_found` where pi has none. */
  async find(request: TargetRequest, signal: AbortSignal): Promise<Target> {
    const { model } = request.options;
    if (model !== undefined && isExactModel(model)) {
      const found = (await this.#options.models()).find(({ provider, id }) => `${provider}/${id}` === model);
      if (found !== undefined) return await this.#target(found, request);
    }
    const state = await this.#state(request, signal);
    const { model: chosen, thinkingLevel } = isRecord(state) ? state : {};
    if (!isRecord(chosen) || chosen["id"] === "unknown" || typeof chosen["id"] !== "string") {
      throw new WireError("model_not_found", "pi has no model to build the context for.");
    }
    const target = await this.#target(chosen as unknown as PiModel, request);
    const hasLevel = model?.includes(":") === true && typeof thinkingLevel === "string" && isSpawnValue(thinkingLevel);
    return hasLevel ? { ...target, thinking: thinkingLevel } : target;
  }

  async #state(request: TargetRequest, signal: AbortSignal): Promise<unknown> {
    const { cwd } = request;
    const { name: _name, ...options } = request.options;
    const key = canonicalJson([await this.#options.program(), cwd, options]);
    const further = Object.values(options)
      .flat()
      .filter((one): one is string => typeof one === "string" && one.startsWith("/"));
    // Read before pi is asked: later changes invalidate its answer.
    const inputs = await inputsOf({ cwd, env: this.#options.env, further });
    const known = this.#known.get(key);
    if (inputs !== undefined && known?.inputs === inputs) return known.state;
    const probe = (until: AbortSignal): Promise<unknown> => this.#options.probe({ cwd, options }, until);
    // If pi's inputs are unknown, its answer is not shared.
    const state = await (inputs === undefined ? probe(signal) : this.#asks.ask(`${key}\n${inputs}`, signal, probe));
    this.#known.delete(key);
    if (inputs !== undefined) this.#known.set(key, { inputs, state });
    const [oldest] = this.#known.keys();
    if (this.#known.size > this.#options.maxKnown && oldest !== undefined) this.#known.delete(oldest);
    return state;
  }

  async #target(found: PiModel, { cwd, options }: TargetRequest): Promise<Target> {
    const { api, provider, id, contextWindow, input } = found as PiModel & Readonly<Record<string, unknown>>;
    const model = `${provider}/${id}`;
    const hasWindow = typeof contextWindow === "number" && contextWindow > 0;
    return {
      model,
      target: {
        api: typeof api === "string" ? api : "unknown",
        provider: String(provider),
        id: String(id),
        takesImages: Array.isArray(input) && input.includes("image"),
        ...(hasWindow ? { contextWindow } : {}),
      },
      budget: {
        ...(hasWindow ? { contextWindow } : {}),
        reserveTokens: await reserveTokens(model, this.#settingsFiles(cwd, options)),
      },
    };
  }

  /** Settings that pi reads, highest priority first. */
  #settingsFiles(cwd: string, { approve }: StoredOptions): string[] {
    const own = join(agentDirectoryOf(this.#options.env), "settings.json");
    return approve === true ? [join(cwd, ".pi", "settings.json"), own] : [own];
  }
}

/** The budget of a context, and the token count above which pi compacts. */
export function budgetOf(
  maxTokens: ContextOption["maxTokens"],
  facts: BudgetFacts,
): { readonly budget: number | null; readonly threshold?: number } {
  const { contextWindow, reserveTokens = defaultReserveTokens } = facts;
  const budget = contextBudget(maxTokens, facts);
  return contextWindow === undefined ? { budget } : { budget, threshold: Math.max(0, contextWindow - reserveTokens) };
}

/** The part of a model's window that pi's settings reserve. */
async function reserveTokens(model: string, files: readonly string[]): Promise<number> {
  const found = await Promise.all(files.map(compactionIn));
  const perModel = found.map(({ modelOverrides }) => (isRecord(modelOverrides) ? modelOverrides[model] : {}));
  for (const settings of [...perModel, ...found]) {
    const tokens = isRecord(settings) ? settings["reserveTokens"] : undefined;
    if (Number.isSafeInteger(tokens) && Number(tokens) >= 0) return Number(tokens);
  }
  return defaultReserveTokens;
}

async function compactionIn(file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const settings: unknown = JSON.parse(await readFile(file, "utf8"));
    const compaction = isRecord(settings) ? settings["compaction"] : undefined;
    return isRecord(compaction) ? compaction : {};
  } catch {
    return {};
  }
}
