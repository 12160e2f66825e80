import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { WireError } from "../../protocol/errors.ts";
import type { Result } from "../../protocol/methods.ts";
import { isRecord } from "../../protocol/objects.ts";
import type { PiModel } from "../../protocol/pi-data.ts";
import { inputsOf } from "../pi/pi-inputs.ts";
import { agentDirectoryOf } from "../pi/session-file.ts";

export interface ModelCatalogueOptions {
  readonly env: NodeJS.ProcessEnv;
  /** A directory without a project: a project's models would be for its sessions only. */
  readonly cwd: string;
  /** Identifies the pi version. */
  readonly program: () => Promise<string>;
  /** Queries a pi that is started only for this. Returns its data for `get_available_models`. */
  readonly ask: (signal: AbortSignal) => Promise<unknown>;
  /** How long an answer is valid if the inputs of pi's start do not change. */
  readonly keepMs: number;
}

type ModelList = Result<"model/list">;

/** The public fields of a model: no header or key of its definition. */
const shown = ["id", "provider", "name", "api", "reasoning", "input", "contextWindow", "maxTokens", "cost"] as const;

/** The models without a session. Starting a pi takes a third of a second, so its answer is cached. */
export class ModelCatalogue {
  readonly #options: ModelCatalogueOptions;
  readonly #abandon = new AbortController();
  #known: { readonly inputs: string; readonly list: ModelList } | undefined;
  #asking: { readonly inputs: string; readonly list: Promise<ModelList> } | undefined;

  constructor(options: ModelCatalogueOptions) {
    this.#options = options;
  }

  /** Throws errors of starting pi. */
  async list(refresh: boolean): Promise<ModelList> {
    const inputs = await this.#inputs();
    const known = this.#known;
    const isGood = inputs !== undefined && known?.inputs === inputs;
    if (!refresh && isGood && Date.now() - known.list.asOf < this.#options.keepMs) return known.list;
    // A concurrent caller shares the same query.
    if (this.#asking === undefined || this.#asking.inputs !== inputs) {
      const asking = { inputs: inputs ?? "", list: this.#ask(inputs) };
      this.#asking = asking;
      const over = (): void => {
        if (this.#asking === asking) this.#asking = undefined;
      };
      asking.list.then(over, over);
    }
    return await this.#asking.list;
  }

  /** The last answer, however old, without a query. */
  known(): ModelList | undefined {
    const list = this.#known?.list;
    return list && { ...list, cached: true, cachedAt: list.asOf };
  }

  /** Ends the pi that is being queried, if any. */
  async close(): Promise<void> {
    this.#abandon.abort();
    await this.#asking?.list.catch(() => {});
  }

  async #ask(inputs: string | undefined): Promise<ModelList> {
    const list = await modelList(await this.#options.ask(this.#abandon.signal), this.#options.env);
    this.#known = inputs === undefined ? undefined : { inputs, list };
    return list;
  }

  async #inputs(): Promise<string | undefined> {
    const { env, cwd, program } = this.#options;
    const inputs = await inputsOf({ cwd, env, further: [] });
    return inputs === undefined ? undefined : `${await program()}\n${inputs}`;
  }
}

/** pi's answer to `get_available_models`, with its stored logins. */
export async function modelList(data: unknown, env: NodeJS.ProcessEnv): Promise<ModelList> {
  const listed = isRecord(data) ? data["models"] : undefined;
  if (!Array.isArray(listed))
    throw new WireError("unsupported_by_pi", "The models of this pi have an undocumented format.");
  const models = listed
    .filter(isRecord)
    .map(
      (model) =>
        Object.fromEntries(shown.flatMap((key) => (key in model ? [[key, model[key]]] : []))) as unknown as PiModel,
    );
  const logins = await storedLogins(env);
  const ids = new Set([...models.map(({ provider }) => provider), ...logins.keys()]);
  const providers = [...ids].toSorted().map((id) => ({
    id,
    models: models.filter(({ provider }) => provider === id).length,
    login: logins.get(id) ?? ("other" as const),
  }));
  return { models, providers, asOf: Date.now() };
}

/** The kind of credentials that pi has stored for each provider, never the credentials themselves. */
async function storedLogins(env: NodeJS.ProcessEnv): Promise<ReadonlyMap<string, "oauth" | "api_key">> {
  const text = await readFile(join(agentDirectoryOf(env), "auth.json"), "utf8").catch(() => "{}");
  let stored: unknown;
  try {
    stored = JSON.parse(text);
  } catch {
    // pi reports its errors; without it there are no stored logins.
  }
  const entries = Object.entries(isRecord(stored) ? stored : {});
  return new Map(
    entries.flatMap(([provider, login]) => {
      const type = isRecord(login) ? login["type"] : undefined;
      return type === "oauth" || type === "api_key" ? [[provider, type] as const] : [];
    }),
  );
}
