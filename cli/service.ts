import { execFile } from "node:child_process";
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, extname, join } from "node:path";
import { createInterface } from "node:readline/promises";
import { stateDirectory } from "../client/discovery.ts";
import { makeDirectory, removeDirectory } from "../server/lib/make-directory.ts";
import { endLeftChildren } from "../server/pi/child-registry.ts";
import { nodeFlags } from "./daemon-process.ts";
import { endDaemon } from "./end-daemon.ts";
import { CommandError, reportOf, UsageError } from "./errors.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Invocation } from "./invocation.ts";
import { defaultLogFile } from "./log-file.ts";
import { withoutScript } from "./npm.ts";
import type { Output } from "./output.ts";
import { candidates, isOneLine, kept } from "./service/environment.ts";
import { isLaunchAgent, launchdPlan } from "./service/launchd.ts";
import type { Platform, ServiceFile, ServicePlan } from "./service/plan.ts";
import { configHomeOf, isService, systemdPlan } from "./service/systemd.ts";
import { list } from "./values.ts";

type Service = Invocation<"service">;

const plans: Readonly<Record<Platform, typeof systemdPlan>> = { systemd: systemdPlan, launchd: launchdPlan };
const commandTimeoutMs = 60_000;

/** Installs or removes the daemon as a service of the system's service manager. */
export async function service(invocation: Service): Promise<number> {
  const { options, env } = invocation;
  const [action] = invocation.arguments;
  const platform = options.platform ?? (process.platform === "darwin" ? "launchd" : "systemd");
  const environment = action === "install" ? kept(env, await namesToKeep(invocation)) : {};
  const stateDir = stateDirectory(options["state-dir"], env);
  const home = env["HOME"] || homedir();
  const configHome = configHomeOf(env);
  for (const path of [stateDir, home, configHome, process.execPath, import.meta.dirname]) requireOneLine(path);
  const plan = plans[platform]({
    program: [process.execPath, ...nodeFlags, join(import.meta.dirname, `main${extname(import.meta.filename)}`)],
    stateDir,
    logFile: defaultLogFile(stateDir),
    home,
    configHome,
    environment,
    uid: process.getuid?.() ?? 0,
  });
  if (action === "install") return install(plan, invocation);
  return action === "uninstall" ? uninstall(plan, stateDir, invocation) : status(plan, platform, invocation);
}

/** A line break in a path would end a directive and begin another. */
function requireOneLine(path: string): void {
  if (isOneLine(path)) return;
  throw new UsageError(`A service cannot use a path with control characters: ${JSON.stringify(path)}.`, "service");
}

/** The variables given by option, chosen by the user, or the usual ones; secrets only by name. */
async function namesToKeep({ options, output, env, signal }: Service): Promise<readonly string[]> {
  if (options.keep !== undefined) return list(options.keep, { option: "keep", command: "service" });
  const found = candidates(withoutScript(env));
  if (output.json || !output.isTerminal || process.stdin.isTTY !== true) return found.usual;
  output.print("A service does not inherit your shell's environment. These variables are set here:");
  output.print(`  kept by default: ${found.usual.join(", ") || "none"}`);
  output.print(`  logins, kept only if named: ${found.secrets.join(", ") || "none"}`);
  const asking = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const line = await asking.question(
      "Which other variables should be kept? (Separate names by commas; - before a name removes it.) ",
      {
        signal,
      },
    );
    const words = line.split(/[\s,]+/).filter((word) => word !== "");
    const left = new Set(words.filter((word) => word.startsWith("-")).map((word) => word.slice(1)));
    return [...found.usual, ...words.filter((word) => !word.startsWith("-"))].filter((each) => !left.has(each));
  } finally {
    asking.close();
  }
}

async function install(plan: ServicePlan, { options, output, signal }: Service): Promise<number> {
  const enables = options["no-enable"] !== true;
  const commands = enables ? plan.enable : [];
  if (options["dry-run"] === true) {
    showPlan({ files: plan.files.map(shown), commands }, output);
    return exitCodes.done;
  }
  const isUpdate = plan.files.some(({ path }) => existsSync(path));
  const written: Written[] = [];
  try {
    for (const file of plan.files) write(file, written);
    for (const command of commands) await run(command, signal);
  } catch (error) {
    // Enabling may have succeeded in part. A service manager that does not answer has nothing to undo.
    const attempt = (command: readonly string[]) => run(command).catch(() => {});
    for (const command of isUpdate ? [] : plan.disable) await attempt(command);
    for (const one of written.toReversed()) undo(one);
    for (const command of plan.forget) await attempt(command);
    throw notInstalled(error, signal);
  }
  const files = plan.files.map(({ path }) => path);
  if (output.json) {
    output.document({ installed: true, files, commands });
    return exitCodes.done;
  }
  for (const path of files) output.print(`wrote ${path}`);
  for (const command of commands) output.print(`ran ${command.join(" ")}`);
  for (const command of enables ? [] : plan.enable) output.aside(`then: ${command.join(" ")}`);
  return exitCodes.done;
}

interface Written {
  readonly path: string;
  readonly former: Buffer | undefined;
  /** The topmost directory that was created for the file. */
  readonly madeFolder: string | undefined;
}

/** Writes a file, after it has recorded how to undo that. */
function write({ path, text, isSecret }: ServiceFile, written: Written[]): void {
  const former = existsSync(path) ? readFileSync(path) : undefined;
  written.push({ path, former, madeFolder: makeDirectory(dirname(path), 0o700) });
  // The file never has the permissions of an earlier file.
  if (isSecret && former !== undefined) chmodSync(path, 0o600);
  writeFileSync(path, text, { mode: isSecret ? 0o600 : 0o644 });
}

function undo({ path, former, madeFolder }: Written): void {
  if (former !== undefined) writeFileSync(path, former);
  else rmSync(path, { force: true });
  removeDirectory(dirname(path), madeFolder);
}

function notInstalled(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted || !(error instanceof CommandError)) return error;
  const noBus = /\bbus\b/i.test(error.message)
    ? " No service manager runs for your user: log in, or run `loginctl enable-linger`."
    : "";
  const message = `${error.message}. The service was not installed; its files are as before.${noBus} \`pi-rpcd start\` needs no service.`;
  return new CommandError(error.kind, message, { cause: error });
}

interface ShownPlan {
  readonly files: readonly { readonly path: string; readonly text: string }[];
  readonly commands: readonly (readonly string[])[];
}

function showPlan(plan: ShownPlan, output: Output): void {
  if (output.json) {
    output.document(plan);
    return;
  }
  for (const { path, text } of plan.files) output.printText(`# ${path}\n${text}`);
  for (const command of plan.commands) output.print(`$ ${command.join(" ")}`);
}

async function uninstall(plan: ServicePlan, stateDir: string, invocation: Service): Promise<number> {
  const { options, output, env, signal } = invocation;
  const present = plan.files.filter(({ path }) => existsSync(path));
  const runs = options["no-enable"] !== true && present.length > 0;
  if (options["dry-run"] === true) {
    showRemoval(present, runs ? [...plan.disable, ...plan.forget] : [], output);
    return exitCodes.done;
  }
  // A service that is already gone cannot be ended; its files can still be removed.
  for (const command of runs ? plan.disable : []) {
    await run(command, signal).catch((error: unknown) => output.note("service", (error as Error).message));
  }
  if (runs && (isService(stateDir, env) || isLaunchAgent(stateDir, env))) await endProcesses(stateDir, invocation);
  for (const { path } of present) rmSync(path, { force: true });
  for (const command of runs ? plan.forget : []) {
    await run(command, signal).catch((error: unknown) => output.note("service", (error as Error).message));
  }
  if (output.json) output.document({ installed: false, removed: present.map(({ path }) => path) });
  else if (present.length === 0) output.print("No service is installed.");
  else for (const { path } of present) output.print(`removed ${path}`);
  return exitCodes.done;
}

function showRemoval(present: readonly ServiceFile[], commands: readonly (readonly string[])[], output: Output): void {
  if (output.json) {
    output.document({ removes: present.map(({ path }) => path), commands });
    return;
  }
  for (const { path } of present) output.print(`would remove ${path}`);
  for (const command of commands) output.print(`$ ${command.join(" ")}`);
}

/**
 * Ends what the service manager leaves: a daemon that it did not end, and pi processes, which wait for another daemon
 * after theirs has crashed.
 */
async function endProcesses(stateDir: string, { output, signal }: Service): Promise<void> {
  try {
    await endDaemon(stateDir, commandTimeoutMs, signal);
    const ended = await endLeftChildren(stateDir);
    if (ended > 0) output.note("service", `Ended ${ended} ${ended === 1 ? "process" : "processes"} of pi.`);
  } catch (error) {
    signal.throwIfAborted();
    output.note("service", reportOf(error).message);
  }
}

async function status(plan: ServicePlan, platform: Platform, { output, signal }: Service): Promise<number> {
  const missing = plan.files.filter(({ path }) => !existsSync(path)).map(({ path }) => path);
  const installed = missing.length === 0;
  const said = installed ? await run(plan.status, signal).catch((error: unknown) => (error as Error).message) : "";
  const lines = said.split("\n").slice(0, 2).join(", ");
  if (output.json) output.document({ installed, platform, missing, status: lines });
  else if (installed) output.print(`installed for ${platform}: ${lines}`);
  else if (missing.length === plan.files.length) output.print("No service is installed.");
  else
    output.print(`The installation is incomplete; missing: ${missing.join(", ")}. Repeat it: pi-rpcd service install`);
  return installed ? exitCodes.done : exitCodes.failed;
}

/** The printed form: the names of variables, never their values. */
function shown({ path, text, isSecret }: ServiceFile): { readonly path: string; readonly text: string } {
  if (!isSecret) return { path, text };
  const masked = text
    .replaceAll(/^(\w+)=".*"$/gm, '$1="…"')
    .replaceAll(/(<key>EnvironmentVariables<\/key>\n {2}<dict>\n)([\s\S]*?)( {2}<\/dict>)/g, (_all, head, body, end) =>
      [head, String(body).replaceAll(/<string>.*<\/string>/g, "<string>…</string>"), end].join(""),
    );
  return { path, text: masked };
}

async function run([file = "", ...args]: readonly string[], signal?: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  execFile(file, args, { timeout: commandTimeoutMs, ...(signal && { signal }) }, (error, stdout, stderr) => {
    if (error === null) return resolve(stdout.trim());
    const why = (stderr || stdout || error.message).trim();
    reject(new CommandError("service_command_failed", `${[file, ...args].join(" ")}: ${why}`, { cause: error }));
  });
  return promise;
}
