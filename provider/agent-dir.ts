import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** pi's names for the provider, one for each API. */
export type ScriptedName = "scripted" | "scripted-responses" | "scripted-anthropic" | "scripted-google";

export interface AgentDirOptions {
  /** The provider that serves the models. */
  readonly provider: ProviderAddress;
  /** Default: the models `model-1` and `model-2`. */
  readonly models?: readonly ScriptedModel[];
  /** More names for the providers: pi treats some names specially. Default: none. */
  readonly aliases?: Readonly<Record<string, ScriptedName>>;
  /** The provider that pi uses by default, with the first model. Default `scripted`. */
  readonly defaultProvider?: ScriptedName;
  /** Settings that replace the ones for tests, by their top-level name. */
  readonly settings?: Readonly<Record<string, unknown>>;
  /** The parent directory. Default: the system's directory for temporary files. */
  readonly parentDir?: string;
}

export interface ProviderAddress {
  readonly baseUrls: { readonly openai: string; readonly anthropic: string; readonly google: string };
  readonly apiKey: string | undefined;
}

/** A model as in pi's `models.json`; any field of pi's may be given. */
export interface ScriptedModel {
  readonly id: string;
  /** Tokens. Default 200 000. */
  readonly contextWindow?: number;
  /** Tokens. Default 16 384. */
  readonly maxTokens?: number;
  readonly [field: string]: unknown;
}

export interface AgentDir {
  readonly path: string;
  /** The environment that pi needs; an HTTP proxy must not be used for loopback. */
  readonly env: { readonly PI_CODING_AGENT_DIR: string; readonly PI_OFFLINE: "1"; readonly NO_PROXY: string };
  /** `provider/id` of the default model. */
  readonly model: string;
  /** `provider/id` of every model. */
  readonly models: readonly string[];
  /** Removes the directory with everything that pi wrote into it. Idempotent. */
  dispose(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

const apis: Readonly<Record<ScriptedName, { readonly api: string; readonly base: keyof ProviderAddress["baseUrls"] }>> =
  {
    scripted: { api: "openai-completions", base: "openai" },
    "scripted-responses": { api: "openai-responses", base: "openai" },
    "scripted-anthropic": { api: "anthropic-messages", base: "anthropic" },
    "scripted-google": { api: "google-generative-ai", base: "google" },
  };

/** Creates a temporary agent directory for pi whose only models are those of the scripted provider. */
export async function createAgentDir(options: AgentDirOptions): Promise<AgentDir> {
  const models = options.models ?? [{ id: "model-1" }, { id: "model-2" }];
  const defaultProvider = options.defaultProvider ?? "scripted";
  const defaultModel = models[0]?.id ?? "model-1";
  const path = await mkdtemp(join(options.parentDir ?? tmpdir(), "pi-agent-"));
  await writeJson(join(path, "models.json"), { providers: providers(options, models) });
  await writeJson(join(path, "settings.json"), { ...testSettings, defaultProvider, defaultModel, ...options.settings });
  const dispose = (): Promise<void> => rm(path, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  return {
    path,
    env: { PI_CODING_AGENT_DIR: path, PI_OFFLINE: "1", NO_PROXY: "127.0.0.1,localhost,::1" },
    model: `${defaultProvider}/${defaultModel}`,
    models: Object.keys(apis).flatMap((name) => models.map((model) => `${name}/${model.id}`)),
    dispose,
    [Symbol.asyncDispose]: dispose,
  };
}

/** pi sends nothing unasked, and retries do not slow tests down. */
const testSettings = {
  defaultThinkingLevel: "off",
  cacheWarming: "off",
  enableInstallTelemetry: false,
  quietStartup: true,
  retry: { enabled: true, maxRetries: 3, baseDelayMs: 20, maxAgentDelayMs: 200, provider: { maxRetries: 0 } },
};

function providers(
  { provider: address, aliases = {} }: AgentDirOptions,
  models: readonly ScriptedModel[],
): Record<string, unknown> {
  const more = Object.entries(aliases).map(([alias, name]) => [alias, apis[name]] as const);
  const entries = [...Object.entries(apis), ...more].map(([name, { api, base }]) => [
    name,
    {
      name,
      api,
      baseUrl: address.baseUrls[base],
      apiKey: address.apiKey ?? "scripted",
      models: models.map((model) => ({
        name: model.id,
        contextWindow: 200_000,
        maxTokens: 16_384,
        cost: { input: 1, output: 5, cacheRead: 0.1, cacheWrite: 1.25 },
        ...model,
      })),
    },
  ]);
  return Object.fromEntries(entries);
}

async function writeJson(path: string, value: unknown): Promise<void> {
  await writeFile(path, `${JSON.stringify(value, undefined, 2)}\n`, { mode: 0o600, flag: "wx" });
}
