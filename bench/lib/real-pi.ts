import { existsSync } from "node:fs";
import { join } from "node:path";
import { type AgentDirOptions, createAgentDir } from "../../provider/agent-dir.ts";
import { type ProviderOptions, type ScriptedProvider, startProvider } from "../../provider/server.ts";
import type { Resources, Setting } from "./figure.ts";

const root = join(import.meta.dirname, "..", "..");
const cli = join("dist", "bundle", "cli.js");

export interface RealPi {
  readonly version: string;
  readonly path: string;
}

/** The installed versions of pi: the dependency, and the one that the tests download. */
export function realPis(): readonly RealPi[] {
  const known: readonly RealPi[] = [
    { version: "0.87.1", path: join(root, "node_modules", "@earendil-works", "pi-coding-agent", cli) },
    { version: "1.5.2", path: join(root, ".cache", "pi", "1.5.2", cli) },
  ];
  return known.filter(({ path }) => existsSync(path));
}

/** The pi of the option `--pi`, otherwise the newest. */
export function chosenPi(): RealPi {
  const wanted = process.env["PI_RPCD_BENCH_PI"];
  const chosen = wanted === undefined ? realPis().at(-1) : realPis().find(({ version }) => version === wanted);
  if (chosen === undefined)
    throw new Error(`pi ${wanted ?? ""} is not installed; "npm test" downloads the newest version.`);
  return chosen;
}

/** A model that answers according to the script, and an environment in which pi uses only that model. */
export interface ScriptedModel {
  readonly provider: ScriptedProvider;
  readonly env: Readonly<Record<string, string>>;
}

export async function scriptModel(
  setting: Setting,
  resources: Resources,
  options: ProviderOptions = {},
  agent: Omit<AgentDirOptions, "provider"> = {},
): Promise<ScriptedModel> {
  const provider = resources.add(await startProvider(options), (open) => open.close());
  const agentDir = await createAgentDir({ provider, parentDir: setting.directory, ...agent });
  return { provider, env: agentDir.env };
}
