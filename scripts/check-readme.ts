import { copyFileSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createAgentDir } from "../provider/agent-dir.ts";
import { answer, call } from "../provider/reply.ts";
import { startProvider } from "../provider/server.ts";
import { type Fence, fencesOf } from "../test/contract/docs/documents.ts";
import { root, run } from "./lib/command.ts";

// Runs the code in README.md in its order, as a newcomer: in a new checkout, with an empty home directory, and without
// `pi-rpcd` on PATH until README.md installs it. pi has a login: that of a scripted provider.

const work = mkdtempSync(join(tmpdir(), "pi-rpcd-readme-"));
const checkout = join(work, "pi-rpcd");
const home = join(work, "home");
const temporary = join(work, "tmp");

class StepFailed extends Error {}

/** What each block that prints something must have printed. */
const results: readonly { readonly block: RegExp; readonly output: RegExp }[] = [
  { block: /^npm run demo$/m, output: /All checks passed/ },
  { block: /^pi-rpcd push /m, output: /delivered +accepted by the provider: evidence/ },
  { block: /^import /m, output: /The model has it\. Evidence: / },
];

async function output(command: string, args: readonly string[], cwd = root): Promise<string> {
  const { code, output } = await run(command, args, { cwd });
  if (code !== 0) throw new StepFailed(`${command} ${args.join(" ")} failed:\n${output}`);
  return output.trim();
}

/** Copies the files that git knows, with their changes. */
async function copyCheckout(): Promise<void> {
  const files = (await output("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"])).split("\0");
  for (const file of files.filter((name) => name !== "")) {
    mkdirSync(join(checkout, dirname(file)), { recursive: true });
    copyFileSync(join(root, file), join(checkout, file));
  }
}

/** Only what a shell of a new user has, and how this machine reaches its npm registry. */
async function newcomersEnvironment(): Promise<Record<string, string>> {
  const { NODE_EXTRA_CA_CERTS: certificates } = process.env;
  const npm = dirname(await output("bash", ["-c", "type -P npm"]));
  return {
    HOME: home,
    TMPDIR: temporary,
    LANG: "C.UTF-8",
    PATH: [dirname(process.execPath), join(home, ".local", "bin"), npm, "/usr/local/bin", "/usr/bin", "/bin"].join(":"),
    npm_config_prefix: join(home, ".local"),
    npm_config_registry: await output("npm", ["config", "get", "registry", "--loglevel=error"]),
    npm_config_prefer_offline: "true",
    npm_config_audit: "false",
    npm_config_cache: await output("npm", ["config", "get", "cache", "--loglevel=error"]),
    ...(certificates !== undefined && { NODE_EXTRA_CA_CERTS: certificates }),
  };
}

class Shell {
  readonly #env: readonly string[];
  #cwd = checkout;

  constructor(env: Readonly<Record<string, string>>) {
    this.#env = Object.entries(env).map(([name, value]) => `${name}=${value}`);
  }

  /** Runs lines, and stays in the directory where they end. */
  async run(lines: string): Promise<string> {
    const whole = `${lines}\npwd > "$HOME/directory"`;
    const printed = await output("env", ["-i", ...this.#env, "bash", "-euo", "pipefail", "-c", whole], this.#cwd);
    this.#cwd = readFileSync(join(home, "directory"), "utf8").trim();
    return printed;
  }

  async runBlock({ info, text }: Fence): Promise<void> {
    if (info[0] === "ts") writeFileSync(join(this.#cwd, "push.ts"), text);
    const printed = await this.run(info[0] === "ts" ? "node push.ts" : text);
    for (const { block, output } of results) {
      if (block.test(text) && !output.test(printed)) throw new StepFailed(`${text}\nprinted:\n${printed}`);
    }
    // npm and tsc keep their compiled code in the temporary directory.
    if (/^(?:npm|mkdir)\b/.test(text)) rmSync(join(temporary, "node-compile-cache"), { recursive: true, force: true });
    const left = readdirSync(temporary);
    if (left.length > 0) throw new StepFailed(`${text}\nleft temporary files: ${left.join(", ")}`);
  }
}

const blocks = fencesOf(readFileSync(join(root, "README.md"), "utf8")).filter(
  ({ info }) => info[0] !== "text" && info[0] !== "json",
);
await using provider = await startProvider({
  script: [],
  otherwise: ({ messages }) =>
    messages.at(-1)?.role === "user" ? answer(call("bash", { command: "sleep 2" })) : answer("It went well."),
});
let shell: Shell | undefined;
try {
  for (const directory of [checkout, home, temporary]) mkdirSync(directory);
  await copyCheckout();
  const agentDir = await createAgentDir({ provider, parentDir: work });
  shell = new Shell({ ...(await newcomersEnvironment()), ...agentDir.env });
  await shell.run("! type -P pi-rpcd");
  for (const { block } of results) {
    if (!blocks.some(({ text }) => block.test(text))) throw new StepFailed(`README.md has no block with ${block}`);
  }
  for (const block of blocks) await shell.runBlock(block);
} catch (error) {
  if (!(error instanceof StepFailed)) throw error;
  console.error(error.message);
  process.exitCode = 1;
} finally {
  await shell?.run("! type -P pi-rpcd || pi-rpcd stop");
  rmSync(work, { recursive: true, force: true });
}
