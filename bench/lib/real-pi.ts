import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  CHILD_MARKER_ENV,
  HELPER_CONFIG_ENV,
  type HelperConfig,
  LINK_VERSION,
  type PartsConfig,
} from "../../protocol/link.ts";
import { type AgentDirOptions, createAgentDir } from "../../provider/agent-dir.ts";
import { type ProviderOptions, type ScriptedProvider, startProvider } from "../../provider/server.ts";
import { planSpawn } from "../../server/pi/spawn-options.ts";
import { DirectChild } from "./direct-child.ts";
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

let count = 0;

export interface DirectPiOptions {
  /** Default: the build's. `none`: pi starts without the helper. */
  readonly helper?: string;
  readonly parts?: PartsConfig;
  /** Entries of the session file after its header. Default: none. */
  readonly entries?: readonly object[];
}

/** Starts pi with the daemon's arguments and environment, and a plain reader. */
export function startPiDirectly(
  pi: RealPi,
  setting: Setting,
  env: Readonly<Record<string, string>>,
  { helper = join(setting.dist, "extension", "index.js"), parts, entries = [] }: DirectPiOptions = {},
): DirectChild {
  count += 1;
  const directory = join(setting.directory, `direct${count}`);
  const helperConfig = join(directory, "helper.json");
  const sessionFile = join(directory, "session.jsonl");
  const id = `bench-${count}`;
  mkdirSync(directory);
  const config: HelperConfig = { link: LINK_VERSION, statusKey: "bench", ...(parts !== undefined && { parts }) };
  writeFileSync(helperConfig, JSON.stringify(config), { mode: 0o600 });
  const header = { type: "session", version: 3, id, timestamp: new Date().toISOString(), cwd: setting.directory };
  writeFileSync(sessionFile, [header, ...entries].map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  const plan = planSpawn({
    program: {
      kind: "script",
      path: pi.path,
      version: pi.version,
      source: "option",
      capabilities: { promptDisposition: true, settledAborted: true },
    },
    helper,
    helperConfig,
    childId: id,
    sessionFile,
    cwd: setting.directory,
    options: {},
    env: { ...process.env, ...env },
  });
  const own = { [CHILD_MARKER_ENV]: plan.env[CHILD_MARKER_ENV], [HELPER_CONFIG_ENV]: plan.env[HELPER_CONFIG_ENV] };
  // The option and its value are the last two.
  const args = helper === "none" ? plan.args.slice(0, -2) : plan.args;
  return DirectChild.start({ args, cwd: plan.cwd, env: { ...env, ...own } });
}
